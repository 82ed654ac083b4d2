"""The counterpart of `cargo bench -p kittiwake-app --bench crawl`: the same timelines with Scrapy.

Fetches, parses and writes the same rows to the same tables with the same indexes, as somebody
would who knows Scrapy and SQLite well: no delays, no logs, no middleware that is not needed, rows
written with executemany in large transactions. It is let off what Kittiwake does beside that: it
keeps every id it has met in memory, cannot resume, and has no query log, no frontier and no
beginnings of conversations.

scrapy_crawl.py URL FIRST_ACCOUNT TIMELINES AT_ONCE FILE SCHEMA
"""

import hashlib
import json
import sqlite3
import sys
import time
from datetime import datetime
from html import unescape
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
from w3lib.html import remove_tags

PAGES_PER_TRANSACTION = 50

USER_COLUMNS = (
    "key", "handle", "display_name", "description", "url", "avatar_url", "banner_url", "is_bot",
    "is_protected", "created_us", "last_posted_us", "followers_count", "following_count",
    "statuses_count", "extra", "observed",
)
STATUS_COLUMNS = (
    "key", "author", "created_us", "edited_us", "text", "html", "language", "url", "visibility",
    "is_sensitive", "content_warning", "reply_to", "reply_to_author", "repost_of", "source",
    "media", "replies_count", "reposts_count", "likes_count", "quotes_count", "extra", "observed",
)


def insert(table, columns, rest=""):
    places = ", ".join("?" * len(columns))
    return f"INSERT INTO {table}({', '.join(columns)}) VALUES ({places}) {rest}"


INSERT_USER = insert(
    "users",
    USER_COLUMNS,
    "ON CONFLICT(key) DO UPDATE SET "
    + ", ".join(f"{column} = excluded.{column}" for column in USER_COLUMNS[1:]),
)
INSERT_STATUS = insert("statuses", STATUS_COLUMNS)
INSERT_TAG = insert("tags", ("key", "name", "url", "observed"))
INSERT_ID = insert(
    "ids",
    ("key", "hash", "canonical", "movable", "first_seen_us", "last_seen_us", "network", "type",
     "alias", "host", "id", "rowid"),
)
INSERT_PLACE = insert("id_places", ("hash", "row"))
INSERT_COMMENT = insert(
    "comments", ("key", "status", "parent", "root", "author", "created_us", "observed")
)
INSERT_LINK = insert(
    "links",
    ("kind", "from_key", "to_key", "at_us", "first_seen_us", "last_seen_us"),
    "ON CONFLICT DO NOTHING",
)


def time_us(text):
    return int(datetime.fromisoformat(text).timestamp() * 1_000_000) if text else None


def plain(html):
    return unescape(remove_tags(html.replace("</p><p>", "\n\n")))


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class Store:
    """Collects rows and writes them, many pages in a transaction."""

    def __init__(self, file, schema, host):
        self.host = host
        self.connection = sqlite3.connect(file, isolation_level=None)
        self.connection.execute("PRAGMA page_size = 8192")
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self.connection.execute("PRAGMA wal_autocheckpoint = 16384")
        self.connection.execute("PRAGMA cache_size = -16384")
        with open(schema, encoding="utf-8") as text:
            self.connection.executescript(text.read())
        self.next_key = 1
        self.next_id = 1
        self.keys = {"user": {}, "status": {}, "tag": {}}
        self.described = set()
        self.pages = 0
        self.clear()

    def clear(self):
        self.users, self.statuses, self.tags, self.ids, self.links = {}, [], [], [], []
        self.comments = []

    def add_id(self, key, kind, alias, host, text, movable=False):
        name = f"mastodon\xff{kind}\xff{alias}\xff{host}\xff{text}"
        digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
        number = int.from_bytes(digest, "little", signed=True)
        self.ids.append(
            (key, number, alias == "", movable, self.now, self.now, "mastodon", kind, alias, host,
             text, self.next_id)
        )
        self.next_id += 1

    def key(self, kind, local):
        """The key of an object and whether it is new."""
        keys = self.keys[kind]
        key = keys.get(local)
        if key is not None:
            return key, False
        key = keys[local] = self.next_key
        self.next_key += 1
        return key, True

    def handle(self, acct):
        return acct if "@" in acct else f"{acct}@{self.host}"

    def named_user(self, local, acct=None):
        key, new = self.key("user", local)
        if new:
            self.add_id(key, "user", "id", self.host, local)
            if acct is not None:
                self.add_id(key, "user", "handle", "", self.handle(acct), True)
        return key

    def user(self, account):
        key = self.named_user(account["id"], account["acct"])
        if key not in self.described:
            self.described.add(key)
            self.add_id(key, "user", "", "", account["uri"])
        note = account["note"]
        extra = {
            "note_html": note,
            "profile_fields": account["fields"],
            "is_group": account["group"],
            "is_discoverable": account["discoverable"],
            "is_indexable": account["indexable"],
            "is_noindex": account["noindex"],
            "hides_collections": account["hide_collections"],
            "roles": account["roles"],
        }
        # Once for each transaction, however often the user was seen.
        self.users[key] = (
            key, self.handle(account["acct"]), account["display_name"], plain(note),
            account["url"], account["avatar"], account["header"], account["bot"],
            account["locked"], time_us(account["created_at"]),
            time_us(account["last_status_at"]), account["followers_count"],
            account["following_count"], account["statuses_count"], compact(extra), self.observed,
        )
        return key

    def tag(self, tag):
        name = tag["name"].lower()
        key, new = self.key("tag", name)
        if new:
            self.add_id(key, "tag", "", "", name)
            self.tags.append((key, tag["name"], tag["url"], self.observed))
        return key

    def status(self, status):
        key, new = self.key("status", status["id"])
        if not new and key in self.described:
            return key
        self.described.add(key)
        if new:
            self.add_id(key, "status", "id", self.host, status["id"])
        self.add_id(key, "status", "", "", status["uri"])
        author = self.user(status["account"])
        at_us = time_us(status["created_at"])
        reply_to = reply_to_author = repost_of = None
        if status["in_reply_to_id"]:
            reply_to, new = self.key("status", status["in_reply_to_id"])
            if new:
                self.add_id(reply_to, "status", "id", self.host, status["in_reply_to_id"])
            reply_to_author = self.named_user(status["in_reply_to_account_id"])
            # Where the conversation began is not looked for.
            self.comments.append((key, None, reply_to, None, author, at_us, "{}"))
        if status["reblog"]:
            repost_of = self.status(status["reblog"])
            self.links.append(("repost", key, repost_of, at_us, self.now, self.now))
        for tag in status["tags"]:
            self.links.append(("tag", key, self.tag(tag), at_us, self.now, self.now))
        for mention in status["mentions"]:
            user = self.named_user(mention["id"], mention["acct"])
            self.links.append(("mention", key, user, at_us, self.now, self.now))
        html = status["content"]
        application = status["application"]
        extra = {"poll": status["poll"], "preview": status["card"]}
        self.statuses.append((
            key, author, at_us, time_us(status["edited_at"]), plain(html), html,
            status["language"], status["url"], status["visibility"], status["sensitive"],
            status["spoiler_text"], reply_to, reply_to_author, repost_of,
            application["name"] if application else None, compact(status["media_attachments"]),
            status["replies_count"], status["reblogs_count"], status["favourites_count"],
            status["quotes_count"], compact(extra), self.observed,
        ))
        return key

    def page(self, statuses):
        self.now = time.time_ns() // 1_000
        self.observed = f'{{"content":[{self.now}]}}'
        # Users who are replied to are named in full somewhere on the same page.
        for status in statuses:
            self.named_user(status["account"]["id"], status["account"]["acct"])
        for status in statuses:
            self.status(status)
        self.pages += 1
        if self.pages % PAGES_PER_TRANSACTION == 0:
            self.write()

    def write(self):
        self.connection.execute("BEGIN")
        self.connection.executemany(INSERT_ID, self.ids)
        places = sorted((hashed, row) for (_, hashed, *_, row) in self.ids)
        self.connection.executemany(INSERT_PLACE, places)
        self.connection.executemany(INSERT_USER, self.users.values())
        self.connection.executemany(INSERT_TAG, self.tags)
        self.connection.executemany(INSERT_STATUS, self.statuses)
        self.connection.executemany(INSERT_LINK, self.links)
        self.connection.executemany(INSERT_COMMENT, self.comments)
        self.connection.execute("COMMIT")
        self.clear()

    def close(self):
        self.write()
        self.connection.close()


class Timelines(scrapy.Spider):
    name = "timelines"

    def __init__(self, url, first, count, store):
        super().__init__()
        self.urls = (
            f"{url}/api/v1/accounts/{account}/statuses?limit=40"
            for account in range(first, first + count)
        )
        self.store = store

    async def start(self):
        for url in self.urls:
            yield scrapy.Request(url, dont_filter=True)

    def parse(self, response):
        self.store.page(json.loads(response.body))
        link = response.headers.get(b"link")
        if link:
            target = link[1 : link.index(b">")].decode()
            yield scrapy.Request(target, dont_filter=True, priority=1)

    def closed(self, reason):
        self.store.close()


def main():
    url, first, count, at_once, file, schema = sys.argv[1:]
    process = CrawlerProcess({
        "CONCURRENT_REQUESTS": int(at_once),
        "CONCURRENT_REQUESTS_PER_DOMAIN": int(at_once),
        "DOWNLOAD_DELAY": 0,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "ROBOTSTXT_OBEY": False,
        "AUTOTHROTTLE_ENABLED": False,
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
        "REDIRECT_ENABLED": False,
        "COMPRESSION_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOGSTATS_INTERVAL": 0,
        "MEMUSAGE_ENABLED": False,
        "LOG_LEVEL": "ERROR",
    })
    store = Store(file, schema, urlsplit(url).netloc)
    process.crawl(Timelines, url=url, first=int(first), count=int(count), store=store)
    process.start()


if __name__ == "__main__":
    main()
