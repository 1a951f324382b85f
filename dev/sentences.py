#!/usr/bin/env python3
"""sentences.py SEED: prints 100 random sentences of the repository, for docs/contributing/evidence/language.md.

25 each from pages, help, messages and comments, from at least four words (messages: five). Not sampled: evidence pages,
rule pages and tables, tutorials' code, strings in tests, and the root's changelog.
"""
import random
import re
import subprocess
import sys

MOST = 25
END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`\"\[])")


def words(text):
    return len(re.findall(r"[\w'`]+", text))


def clean(text):
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\s+", " ", text.replace("**", "")).strip(" -*|>#")


def split(text):
    return [part for part in END.split(clean(text)) if part]


def page(text):
    """Paragraphs, list items and table cells outside blocks of code, comments and rule tables."""
    text = re.sub(r"<!-- rules -->.*?<!-- end of rules -->", "", text, flags=re.S)
    text = re.sub(r"^[ ]*```.*?^[ ]*```", "\n", text, flags=re.S | re.M)
    text = re.sub(r"<!--.*?-->|<[a-z/][^>]*>", "", text, flags=re.S)
    parts, lines = [], []
    for line in text.splitlines() + [""]:
        if line.startswith("|"):
            parts += line.strip("|").split(" | ")
        elif not line.strip() or re.match(r"\s*([-*]|\d+\.)\s|#", line):
            parts.append(" ".join(lines))
            lines = [re.sub(r"^\s*([-*]|\d+\.)\s", "", line)]
        else:
            lines.append(line)
    parts.append(" ".join(lines))
    return [sentence for part in parts for sentence in split(part)]


def help_texts(text):
    """Texts of commands and flags."""
    found = []
    for block in re.findall(r"```text\n(.*?)\n```", text, flags=re.S):
        block = re.sub(r"\n(Usage|Examples):.*?(?=\n\n|\Z)", "\n", block, flags=re.S)
        for part in re.split(r"\n\s*\n|\n {2,6}-[^\n]*\n", block):
            lines = [line.strip() for line in part.splitlines()]
            kept = [line for line in lines if not re.match(r"(-|\[|<|Arguments:|Options:|Possible|olmkit )", line)]
            for sentence in split(" ".join(kept)):
                found.append(sentence)
    return found


def comments(text):
    found, lines = [], []
    for line in text.splitlines() + [""]:
        match = re.match(r"\s*//[/!]? ?(.*)", line)
        if match and match[1].strip() and not match[1].startswith("```"):
            lines.append(match[1])
            continue
        found += split(" ".join(lines))
        lines = []
    return found


def literals(text):
    text = text.split("#[cfg(test)]")[0]
    code = "\n".join(line for line in text.splitlines() if not line.strip().startswith("//"))
    found = re.findall(r'"((?:[^"\\]|\\.)*)"', code, flags=re.S)
    joined = (re.sub(r"\\\n\s*", "", literal).replace('\\"', '"') for literal in found)
    return [s for literal in joined if "\\n" not in literal and "\n" not in literal for s in split(literal)]


def main():
    tracked = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split()
    found = {"page": set(), "help": set(), "message": set(), "comment": set()}
    for path in tracked:
        read = lambda: open(path, encoding="utf-8").read()
        if path.endswith(".md"):
            if path.startswith(("docs/contributing/evidence/", "docs/reference/rules/", "CHANGELOG")):
                continue
            found["page"].update((path, s) for s in page(read()) if words(s) >= 4)
            if path.startswith("docs/reference/commands/"):
                found["help"].update((path, s) for s in help_texts(read()) if words(s) >= 4)
        elif path.endswith(".rs") and "/templates/" not in path:
            found["comment"].update((path, s) for s in comments(read()) if words(s) >= 4)
            is_source = "/src/" in path and not re.search(r"tests?(\.rs|/)|test-support", path)
            if is_source:
                texts = (s for s in literals(read()) if words(s) >= 5 and " " in s)
                found["message"].update((path, s) for s in texts)
    chance = random.Random(sys.argv[1])
    number = 0
    for kind, sentences in found.items():
        for path, sentence in chance.sample(sorted(sentences), MOST):
            number += 1
            print(f"| {number} | {kind} | `{path}` | {sentence.replace('|', chr(92) + '|')} | |")


if __name__ == "__main__":
    main()
