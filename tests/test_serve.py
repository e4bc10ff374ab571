"""`pairloom serve` in this process: any line is answered by valid JSON, and an error changes nothing."""

import io
import json
import os
import pickle
import string

import numpy as np
import pandas as pd
import pytest

from pairloom.cli import serve
from pairloom.cli.serve import Server, read_lines
from pairloom.data.readers.opening import Gate
from pairloom.systems import FPOGD

GOOD = {"id": 7, "amount": 2.5, "channel": "web", "when": "2024-01-05T10:00", "label": 1}


def strict(reply):
    """JSON without Python's own constants."""

    def refuse(name):
        raise AssertionError(f"{name} is no JSON: {reply}")

    return json.loads(reply, parse_constant=refuse)


def fitted(labels=(0, 1)):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "amount": rng.normal(size=40), "channel": rng.choice(["web", "app", None], 40),
        "when": pd.date_range("2024-01-01", periods=40, freq="h"),
    })  # fmt: skip
    return FPOGD(n_components=8, random_state=0).fit(frame, np.array(labels)[rng.integers(0, 2, 40)])


@pytest.fixture
def server():
    return Server(fitted(), "id", "label", 100)


def changed(**more):
    return json.dumps(GOOD | more).encode()


BAD = {
    "infinity": (changed(channel=float("inf")), "column 'channel' must contain categories, but contains inf"),
    "no date": (changed(when="0001-01-01T00:00:00+14:00"), "column 'when' contains a date outside the years 1 to 9999"),
    "large label": (changed(label=1e300), "the label is '1000"),
    "label of text": (changed(label="1_0"), "the label is '1_0', but the labels before it are integers"),
    "label 01": (changed(label="01"), "the label is '01', but the labels before it are integers"),
    "label true": (changed(label=True), "the label is 'True', but the labels before it are integers"),
    "label list": (changed(label=[1]), "the label is a list; expected a number, text or boolean"),
    "other label": (changed(label=2), "label 2 is not one of [0, 1], the classes of this model"),
    "empty label": (changed(label=""), "the label is missing"),
    "id NaN": (changed(id=float("nan")), "the id 'id' must be a number or text"),
    "id infinity": (changed(id=float("-inf")), "the id 'id' must be a number or text"),
    "id list": (changed(id=[1]), "the id 'id' must be a number or text"),
    "text": (changed(amount="much"), "column 'amount' must contain numbers, but contains 'much'"),
    "large": (changed(amount=1e17), "column 'amount' contains 1e+17, too large for float32, which allows up to 1e+15"),
    "nested": (changed(channel={"a": 1}), "column 'channel' must contain categories, but contains a dict"),
    "digits": (b'{"amount": ' + b"1" * 5000 + b"}", "a number has too many digits"),
    "not UTF-8": (b'{"id": "\xff"}', "the text is not UTF-8"),
    "deep": (b'{"amount": ' + b"[" * 100_000, "the JSON is nested too deeply"),
    "deep list": (b"[" * 900 + b"]" * 900, "expected an object, {...}, got a list"),
    "twice": (b'{"id": 1, "id": 2, "amount": 1.0}', "duplicate key 'id'"),
    "no object": (b"3", "expected an object, {...}, got 3"),
    "no row": (b'{"id": 7, "other": 1}', "expected a row (amount, channel, when, ...) or a label (label)"),
    "too long": (None, "the line is longer than 8 MB"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_line_that_cannot_be_taken_is_answered_by_an_error(name, server):
    line, message = BAD[name]
    before = pickle.dumps(server.model)
    reply = strict(server.answer(line, 12))
    assert reply["error"].startswith(message)
    assert reply["line"] == 12
    assert ("id" in reply) == (line is not None and line.startswith(b'{"id": 7,'))
    assert pickle.dumps(server.model) == before
    assert strict(server.answer(changed(), 13))["learned"] == 41
    assert server.counts == {"scored": 1, "learned": 1, "late": 0, "unknown": 0, "errors": 1}


def test_errors_recommend_no_options(server):
    said = [strict(server.answer(line, 1))["error"] for line, _ in BAD.values()]
    assert not [text for text in said if any(word in text for word in ("--", "columns=", "dtype=", "at row"))]


def test_ids_of_different_types_are_different(server):
    row = {name: GOOD[name] for name in server.names}
    for key in (1, 1.0, True, "1"):
        server.answer(json.dumps({"id": key} | row).encode(), 1)
    assert len(server.pending.rows) == 4
    for k, key in enumerate((True, "1", 1.0, 1)):
        reply = strict(server.answer(json.dumps({"id": key, "label": 1}).encode(), 1))
        assert reply == {"id": key, "learned": 41 + k}
        assert type(reply["id"]) is type(key)
    assert strict(server.answer(b'{"id": 1, "label": 1}', 1)) == {"id": 1, "unknown": True}
    assert "id" not in strict(server.answer(json.dumps({"id": None} | row).encode(), 1))
    assert not server.pending.rows


def test_replies_name_the_id_as_the_lines_do():
    server = Server(fitted(), "payment_id", "label", 100)
    assert strict(server.answer(changed(payment_id="a", id=3), 1))["payment_id"] == "a"
    assert strict(server.answer(b'{"payment_id": 3, "label": 7}', 1))["payment_id"] == 3
    with pytest.raises(ValueError, match="--id score: choose another key; replies use score, "):
        Server(fitted(), "score", "label", 100)


def test_a_class_may_be_called_nan():
    server = Server(fitted(("nan", "1")), "id", "label", 100)
    assert "learned" in strict(server.answer(changed(label="nan"), 1))
    assert "learned" in strict(server.answer(changed(label=1.0), 1))
    assert "error" in strict(server.answer(changed(label="01"), 1))
    assert strict(server.answer(changed(label=float("nan")), 1))["error"] == "the label is missing"


class Few(Gate):
    """A pipe that returns a few bytes at a time."""

    def __init__(self, n):
        self.n = n

    def read(self, stream):
        return b"" if self.closed else stream.read(self.n)


@pytest.mark.parametrize("n", [1, 3, 1000])
def test_lines_are_cut_anywhere_and_long_ones_are_left_out(n, monkeypatch):
    monkeypatch.setattr(serve, "MAX_LINE_BYTES", 8)
    data = b"one\n\n \r\n" + b"x" * 30 + b"\nafter\r\n12345678\n123456789\nlast"
    found = list(read_lines(io.BytesIO(data), Few(n)))
    assert found == [(1, b"one"), (4, None), (5, b"after\r"), (6, b"12345678"), (7, None), (8, b"last")]
    assert list(read_lines(io.BytesIO(b"x" * 30), Few(n))) == [(1, None)]


def test_a_closed_gate_leaves_out_what_is_not_whole():
    gate = Few(8)
    found = []
    for number, line in read_lines(io.BytesIO(b"one\ntwo\nthr"), gate):
        found.append((number, line))
        gate.closed = number == 2
    assert found == [(1, b"one"), (2, b"two")]


PIECES = [
    b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e-400", b"null", b"true", b'""', b'"nan"', b'"01"', b'"1_0"',
    b"[[]]", b'"\\ud800"', b"\xff", b"\x00", b"9" * 400, b"1" * 5000, b"-0.0", b"1.0", b'"0001-01-01T00:00:00+14:00"',
    b'"9999-12-31T23:59:59.999999-14:00"', b'"2024-W01-1"', b'"\\u0663"', b"[" * 2000, b'"' + b"x" * 3000 + b'"', b",",
    b'"id"', b'"label"', b'"amount"', b'"channel"', b'"when"', b":", b"{}", b"1", b"0", b"2", b"7",
]  # fmt: skip


def any_line(rng, good):
    """A valid line with a few pieces replaced, removed or duplicated."""
    keys = [key for key in good if rng.random() < 0.8]
    values = [
        PIECES[rng.integers(len(PIECES))] if rng.random() < 0.2 else json.dumps(good[key]).encode() for key in keys
    ]
    parts = [b'"%s": %s' % (key.encode(), value) for key, value in zip(keys, values, strict=True)]
    line = b"{" + b", ".join(parts) + b"}"
    for _ in range(rng.integers(0, 3) if rng.random() < 0.5 else 0):
        low, high = sorted(rng.integers(0, len(line) + 1, 2).tolist())
        middle = [
            b"",
            PIECES[rng.integers(len(PIECES))],
            line[low:high] * 2,
            rng.bytes(3),
            string.printable[:9].encode(),
        ]
        line = line[:low] + middle[rng.integers(len(middle))] + line[high if rng.random() < 0.5 else low :]
    return line.replace(b"\n", b" ")


@pytest.mark.soak
@pytest.mark.parametrize("labels", [(0, 1), ("nan", "1"), (0.0, 1.0), (False, True), (2**60, 2**60 + 1)])
def test_any_line_is_answered(labels):
    base, server = int(os.environ.get("PAIRLOOM_SOAK_SEED", "0")), Server(fitted(labels), "id", "label", 50)
    replies = {"error": 0, "score": 0, "learned": 0}
    for seed in range(base, base + 20_000):
        rng = np.random.default_rng(seed)
        line = any_line(rng, GOOD | {"label": labels[1]}) if rng.random() < 0.9 else rng.bytes(int(rng.integers(0, 40)))
        seen, before = server.model.n_seen_, pickle.dumps(server.model) if seed % 10 == 0 else None
        reply = strict(server.answer(line, seed))
        for key in replies:
            replies[key] += key in reply
        assert server.model.n_seen_ == seen + ("learned" in reply), (seed, line)
        assert "learned" in reply or before in (None, pickle.dumps(server.model)), (seed, line)
        assert np.isfinite(reply.get("score", 0.0)), (seed, line)
    assert min(replies.values()) > 500, replies
