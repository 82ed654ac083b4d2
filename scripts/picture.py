#!/usr/bin/env python3
"""Draws what a command printed as a picture for the README.

    cargo run --release -- demo 2>&1 | scripts/picture.py "cargo run --release -- demo" > docs/demo.svg
"""

import sys
from html import escape

CHARACTER_WIDTH = 7.8
LINE_HEIGHT = 17
MARGIN = 16
COLUMNS_MAX = 150


def main() -> None:
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    lines = [f"$ {command}"] + [line.rstrip("\n") for line in sys.stdin]
    lines = [line.split("\r")[-1].replace("\x1b[2K", "") for line in lines]
    lines = [line if len(line) <= COLUMNS_MAX else line[: COLUMNS_MAX - 1] + "…" for line in lines]
    width = int(max(len(line) for line in lines) * CHARACTER_WIDTH + 2 * MARGIN)
    height = len(lines) * LINE_HEIGHT + 2 * MARGIN
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
          f' viewBox="0 0 {width} {height}" role="img">')
    print(f"<title>What `{escape(command)}` prints</title>")
    print(f'<rect width="{width}" height="{height}" rx="8" fill="#10151c"/>')
    print('<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13" fill="#d7dee8"'
          ' xml:space="preserve">')
    for number, line in enumerate(lines):
        y = MARGIN + LINE_HEIGHT * number + 12
        colour = ' fill="#7fd1b9"' if line.startswith("$ ") else ""
        print(f'<text x="{MARGIN}" y="{y}"{colour}>{escape(line)}</text>')
    print("</g>\n</svg>")


if __name__ == "__main__":
    main()
