# SPDX-License-Identifier: GPL-2.0
"""A strict reader of the OpenMetrics text that accmem metrics may print.

It accepts the types gauge, counter and histogram, no timestamps and no exemplars: what is also
valid in the older text format of Prometheus.
"""
import re

NAME = r"[a-zA-Z_][a-zA-Z0-9_]*"
LABEL = rf'{NAME}="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\d+(?:\.\d+)?)")
SUFFIXES = {"gauge": [""], "counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}


class Family:  # pylint: disable=too-few-public-methods
    """A metric: its type, unit and help, and its samples by name and labels."""

    def __init__(self, name, kind):
        self.name, self.kind, self.unit, self.help = name, kind, None, None
        self.samples = {}

    def names(self):
        return [self.name + suffix for suffix in SUFFIXES[self.kind]]


def check(condition, line, what):
    if not condition:
        raise ValueError(f"{what}: {line!r}")


def read_description(line, families):
    """A line that begins with '# '."""
    words = line.split(" ", 3)
    check(len(words) == 4 and words[1] in ("TYPE", "UNIT", "HELP"), line, "no description")
    keyword, name, text = words[1:]
    if keyword == "TYPE":
        check(re.fullmatch(NAME, name) and name not in families, line, "not a new family")
        check(text in SUFFIXES, line, "unknown type")
        families[name] = Family(name, text)
        return
    family = list(families.values())[-1] if families else None
    check(family and family.name == name and not family.samples, line, "out of place")
    attribute = keyword.lower()
    check(getattr(family, attribute) is None, line, "twice")
    check(keyword != "UNIT" or name.endswith("_" + text), line, "not the unit of the name")
    setattr(family, attribute, text)


def read_sample(line, families):
    """A line with a value, which belongs to the family described last."""
    match = SAMPLE.fullmatch(line)
    check(match, line, "no sample")
    name, text, value = match.groups()
    family = list(families.values())[-1] if families else None
    check(family and name in family.names(), line, "not in its family")
    labels = re.findall(rf"({NAME})=\"((?:[^\"\\]|\\.)*)\"", text or "")
    check(len(dict(labels)) == len(labels), line, "a label twice")
    key = (name, tuple(sorted(labels)))
    check(key not in family.samples, line, "a sample twice")
    family.samples[key] = float(value) if "." in value else int(value)


def check_histogram(family):
    """The buckets of each set of labels are cumulative, and the last is the count."""
    series = {}
    for (name, labels), value in family.samples.items():
        rest = tuple(l for l in labels if l[0] != "le")
        buckets, other = series.setdefault(rest, ([], {}))
        if name.endswith("_bucket"):
            buckets.append((float(dict(labels)["le"].replace("+Inf", "inf")), value))
        else:
            other[name.rsplit("_", 1)[1]] = value
    for labels, (buckets, other) in series.items():
        check(buckets == sorted(buckets) and sorted(v for _, v in buckets) ==
              [v for _, v in buckets], labels, "not cumulative")
        check(buckets and buckets[-1][0] == float("inf"), labels, "no last bucket")
        check(other["count"] == buckets[-1][1] and "sum" in other, labels, "not the count")


def parse(text):
    """Return the families by name; raise ValueError if the text is not valid."""
    families = {}
    check(text.endswith("\n# EOF\n"), text[-40:], "no end")
    for line in text[:-len("# EOF\n")].splitlines():
        if line.startswith("# "):
            read_description(line, families)
        else:
            read_sample(line, families)
    for family in families.values():
        check(family.help, family.name, "no help")
        if family.kind == "histogram":
            check_histogram(family)
    names = [name for family in families.values() for name in family.names()]
    check(len(set(names)) == len(names), names, "names of two families")
    return families
