#!/usr/bin/env python3
"""Turns recorded conversations of a source distribution into JSON lines.

    python3 scripts/recordings.py mastodon_py-2.3.3.tar.gz mastodon.jsonl
    python3 scripts/recordings.py asyncpraw-8.0.3.tar.gz reddit.jsonl
    python3 scripts/recordings.py tweepy_4.12.1.orig.tar.gz x/tweepy.jsonl

Distributions of clients (PyPI: Mastodon.py, MIT licence; Async PRAW, BSD licence; Debian's sources of tweepy,
MIT licence) carry what real servers answered to their tests, as cassettes in YAML or JSON. Each request becomes one line:

    {"cassette", "method", "url", "status", "headers": {lower-case name: first value}, "body": text}

Bodies that are no text (pictures) are left out, since no definition reads them.
`KITTIWAKE_RECORDINGS=FOLDER cargo test -p kittiwake-network` reads FOLDER/mastodon.jsonl,
FOLDER/reddit.jsonl and FOLDER/x/*.jsonl.
"""

import base64
import gzip
import json
import sys
import tarfile
import zlib

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def body_text(body, headers):
    """The body as text, or None where it is none."""
    if body is None:
        return ""
    content = body.get("string", body.get("base64_string", ""))
    if "base64_string" in body:
        content = base64.b64decode(content)
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    encoding = headers.get("content-encoding", "")
    try:
        if encoding == "gzip":
            content = gzip.decompress(content)
        elif encoding == "deflate":
            content = zlib.decompress(content)
        return content.decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        return None


def reader_of(path):
    """What reads the cassette at this place of the archive, or None where there is none."""
    parts = path.split("/")
    if len(parts) < 3 or not parts[-2].startswith("cassettes"):
        return None
    if parts[-1].endswith(".yaml"):
        return lambda content: yaml.load(content, Loader=LOADER)
    if parts[-1].endswith(".json"):
        return json.loads
    return None


def lines(cassette, recorded):
    for interaction in recorded.get("interactions") or []:
        request, response = interaction["request"], interaction["response"]
        headers = {
            name.lower(): str(values[0] if isinstance(values, list) else values)
            for name, values in (response.get("headers") or {}).items()
            if values
        }
        text = body_text(response.get("body"), headers)
        if text is None:
            continue
        yield {
            "cassette": cassette,
            "method": request["method"],
            "url": request["uri"],
            "status": response["status"]["code"],
            "headers": headers,
            "body": text,
        }


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: recordings.py SDIST.tar.gz OUTPUT.jsonl")
    source, output = sys.argv[1:]
    cassettes, conversations, unread = 0, 0, 0
    with tarfile.open(source) as archive, open(output, "w", encoding="utf-8") as out:
        for member in archive:
            read = reader_of(member.name)
            if read is None:
                continue
            content = archive.extractfile(member).read()
            try:
                recorded = read(content)
            except (yaml.YAMLError, ValueError) as error:
                unread += 1
                print(f"{member.name}: not read: {str(error).splitlines()[0]}", file=sys.stderr)
                continue
            cassettes += 1
            for line in lines("/".join(member.name.split("/")[-2:]), recorded or {}):
                json.dump(line, out, ensure_ascii=True)
                out.write("\n")
                conversations += 1
    print(f"{cassettes} cassettes, {conversations} conversations, {unread} not read")


if __name__ == "__main__":
    main()
