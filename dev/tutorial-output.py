#!/usr/bin/env python3
"""tutorial-output.py PAGE OUTPUTS PROJECT: compares the output that a page shows with the recorded output of its commands.

OUTPUTS contains a file for each command with output, named after the line of the command. A line `...` in the page matches any lines. Times,
generated names and the width of columns are not compared. UPDATE_GENERATED=1 writes recorded output into the page.
"""
import difflib
import os
import re
import sys

page, outputs, project = sys.argv[1:]
IGNORED = [
    (re.escape(os.path.realpath(project)), "~"),
    (r"\d{4}-\d{2}-\d{2}T[\d:.]+Z", "TIME"),
    (r"\b(?:\d+d)?(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)? ?m?s\b", "TIME"),
    (r"-[0-9a-f]{8,10}-[a-z0-9]{5}\b", "-HASH"),
    (r"\b\d+\.\d+\.\d+\.\d+\b", "ADDRESS"),
    (r"-{2,}", "--"),
    (r"[ \t]+", " "),
]


def comparable(line):
    for pattern, replacement in IGNORED:
        line = re.sub(pattern, replacement, line)
    return line.rstrip()


def fits(wanted, found):
    """Returns true if the lines fit. A line `...` matches any lines."""
    if not wanted:
        return not found
    if wanted[0] == "...":
        return any(fits(wanted[1:], found[start:]) for start in range(len(found) + 1))
    return bool(found) and comparable(wanted[0]) == comparable(found[0]) and fits(wanted[1:], found[1:])


def recorded(number):
    path = os.path.join(outputs, str(number))
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        # A progress line is overwritten by the next one.
        lines = [line.rsplit("\r", 1)[-1].rstrip() for line in file.read().splitlines()]
    return [line.replace(os.path.realpath(project), "~") for line in lines]


with open(page, encoding="utf-8") as file:
    before = file.read().splitlines()
after, position = [], 0
while position < len(before):
    after.append(before[position])
    position += 1
    found = recorded(position)
    if found is None:
        continue
    start = position
    while not before[position].startswith(("$ ", "```")):
        position += 1
    shown = before[start:position]
    after += shown if fits(shown, found) else found
if before != after:
    if os.environ.get("UPDATE_GENERATED"):
        with open(page, "w", encoding="utf-8") as file:
            file.write("\n".join(after) + "\n")
    else:
        print("\n".join(difflib.unified_diff(before, after, page, "recorded", lineterm="")))
        sys.exit(f"{page} shows other output: run UPDATE_GENERATED=1 dev/tutorial.sh {page}")
