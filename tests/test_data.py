"""Data sets: lookup, reading, checks against known counts, and downloads from a real server on this machine."""

import bz2
import gc
import gzip
import hashlib
import json
import lzma
import os
import subprocess
import sysconfig
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import issparse
from typer.testing import CliRunner

from pairloom.cli.commands import app
from pairloom.data import DATASETS, fetch_dataset, load_dataset
from pairloom.data.catalogue import Part, Source
from pairloom.data.datasets import load
from pairloom.data.files import HASHES, DataFolders

PAPER = ("diabetes", "german", "usps", "rcv1", "a9a", "mnist", "ijcnn1", "covtype")

TRAIN = b"3 1:0.5 3:-2\n1 2:1\n4 4:8\n2 1:3\n"
TEST = b"1 1:7\n"
TINY = Source(
    "tiny", (Part("tiny.train.xz"), Part("tiny.test")), n_features=5, n_negative=3, n_positive=2, labels=(1, 2, 3, 4)
)
TINY_X = [[0.5, 0, -2, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 8, 0], [3, 0, 0, 0, 0], [7, 0, 0, 0, 0]]
TINY_Y = [1, -1, 1, -1, -1]


@pytest.fixture
def places(tmp_path):
    for name in ("home", "variable"):
        (tmp_path / name).mkdir()
    return DataFolders(tmp_path / "home", tmp_path / "variable", tmp_path / "cache")


def fill(folder: Path) -> None:
    (folder / "tiny.train.xz").write_bytes(lzma.compress(TRAIN))
    (folder / "tiny.test").write_bytes(TEST)


def test_the_papers_eight_sets_come_first_with_the_sizes_of_its_table():
    rows = (768, 1_000, 9_298, 20_242, 32_561, 60_000, 141_691, 581_012)
    columns = (8, 24, 256, 47_236, 123, 784, 22, 54)
    known = list(DATASETS.values())[:8]
    assert [(s.name, s.n_rows, s.n_features) for s in known] == list(zip(PAPER, rows, columns, strict=True))
    ratios = (0.54, 2.33, 1.40, 0.93, 3.15, 1.04, 9.45, 1.05)
    assert [round(s.n_negative / s.n_positive, 2) for s in known] == list(ratios)
    assert all(part.url for source in known for part in source.parts)


SLOW = [pytest.param(name, marks=pytest.mark.soak) for name in ("mnist", "covtype")]
QUICK = [name for name in DATASETS if name not in ("mnist", "covtype", "rcv1")]


@pytest.mark.parametrize("name", [*QUICK, *SLOW])
def test_real_files_hold_what_is_known_of_them(name, data_folder):
    source = DATASETS[name]
    data = load_dataset(name, data_home=data_folder, download=False)
    assert data.X.shape == (source.n_rows, source.n_features)
    assert data.X.dtype == np.float64
    assert issparse(data.X) == source.sparse
    assert np.issubdtype(data.y.dtype, np.integer)
    assert (np.sum(data.y == -1), np.sum(data.y == 1)) == (data.n_negative, data.n_positive)
    assert [path.parent for path in data.source] == [data_folder] * len(source.parts)


def test_the_files_of_a_set_are_found_without_reading_them(tmp_path, monkeypatch):
    monkeypatch.delenv("PAIRLOOM_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(FileNotFoundError, match=r"data set 'german': no file german\.numer"):
        fetch_dataset("german", data_home=tmp_path, download=False)
    part = DATASETS["german"].parts[0]
    (tmp_path / part.file).write_text("not read")
    assert fetch_dataset("german", data_home=tmp_path, download=False) == (tmp_path / part.file,)
    with pytest.raises(ValueError, match="name must be"):
        fetch_dataset("germany")


def test_the_subset_of_rcv1_is_not_taken_for_rcv1(data_folder):
    if DATASETS["rcv1"].parts[0].file in os.listdir(data_folder):
        pytest.skip("PAIRLOOM_DATA holds rcv1 itself: this test is for a folder with its subset alone")
    assert load_dataset("rcv1.subset", data_home=data_folder, download=False).X.shape == (1_500, 47_236)
    home = DataFolders(data_folder, None, data_folder / "no cache")
    with pytest.raises(FileNotFoundError, match=r"no file rcv1\.binary\.xz or rcv1_train\.binary\.bz2 in"):
        load(DATASETS["rcv1"], home, may_download=False)


def test_parts_are_read_in_order_and_labels_split_in_half(places):
    fill(places.variable)
    data = load(TINY, places)
    np.testing.assert_array_equal(data.X, TINY_X)
    np.testing.assert_array_equal(data.y, TINY_Y)
    assert (data.name, data.n_features, data.n_positive, data.n_negative) == ("tiny", 5, 2, 3)
    assert data.source == (places.variable / "tiny.train.xz", places.variable / "tiny.test")
    sparse = load(replace(TINY, sparse=True), places)
    assert sparse.X.format == "csr"
    np.testing.assert_array_equal(sparse.X.toarray(), TINY_X)


@pytest.mark.parametrize(
    ("suffix", "pack"), [(".xz", lzma.compress), (".bz2", bz2.compress), (".gz", gzip.compress), (".t", bytes)]
)
def test_the_suffix_says_how_a_file_is_compressed(suffix, pack, places):
    (places.data_home / f"whole{suffix}").write_bytes(pack(TRAIN + TEST))
    data = load(replace(TINY, parts=(Part(f"whole{suffix}"),)), places)
    np.testing.assert_array_equal(data.X, TINY_X)


def test_places_are_looked_at_in_order_and_a_download_keeps_its_name(places):
    part = Part("a.xz", "http://127.0.0.1/binary/a.bz2")
    places.cache.mkdir()
    assert places.find(part) is None
    for folder in (places.cache, places.variable, places.data_home):
        for name in ("a.bz2", "a.xz"):
            (folder / name).touch()
            assert places.find(part) == folder / name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_negative": 4}, r"tiny\.test: found 5 rows, 3 negative and 2 positive; expected 6 rows, 4 negative"),
        ({"n_features": 3}, r"tiny\.train\.xz: found 4 columns; expected 3"),
        ({"labels": (1, 2, 3, 5)}, r"tiny\.train\.xz: found label 4 in row 3; expected one of 1, 2, 3, 5"),
        ({"labels": (1, 2)}, r"found label 3 in row 1"),
    ],
)
def test_a_file_that_is_not_as_known_is_refused(change, message, places):
    fill(places.data_home)
    with pytest.raises(ValueError, match=message):
        load(replace(TINY, **change), places)


@pytest.mark.parametrize(
    "content", [b"<html>Sign in</html>", lzma.compress(TRAIN)[:-20], lzma.compress(b"<html>"), lzma.compress(b"1 0:1")]
)
def test_what_is_no_libsvm_file_is_named(content, places):
    fill(places.data_home)
    (places.data_home / "tiny.train.xz").write_bytes(content)
    with pytest.raises(ValueError, match=r"tiny\.train\.xz cannot be read as a LIBSVM file"):
        load(TINY, places)


@pytest.fixture
def by_name(places, monkeypatch):
    monkeypatch.setitem(DATASETS, "tiny", TINY)
    monkeypatch.setenv("XDG_CACHE_HOME", str(places.cache))
    monkeypatch.setenv("PAIRLOOM_DATA", str(places.variable))
    return places


def test_load_dataset_follows_argument_then_variable(by_name):
    fill(by_name.variable)
    assert load_dataset("tiny").source[0].parent == by_name.variable
    fill(by_name.data_home)
    assert load_dataset("tiny", data_home=str(by_name.data_home)).source[0].parent == by_name.data_home


def test_slips_are_named(by_name, monkeypatch):
    with pytest.raises(ValueError, match=r"name must be one of 'diabetes', .*; got 'rcv2'"):
        load_dataset("rcv2")
    with pytest.raises(FileNotFoundError, match=r"data_home: .*nowhere.*not a folder"):
        load_dataset("tiny", data_home=by_name.data_home / "nowhere")
    monkeypatch.setenv("PAIRLOOM_DATA", "nowhere")
    with pytest.raises(FileNotFoundError, match=r"PAIRLOOM_DATA: .*nowhere.*not a folder"):
        load_dataset("tiny")
    monkeypatch.setenv("PAIRLOOM_DATA", "")
    with pytest.raises(
        FileNotFoundError, match=r"tiny\.train\.xz in\s+data_home: not given\s+PAIRLOOM_DATA: not set\s+cache"
    ):
        load_dataset("tiny")


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder, counts requests, and closes the connection in the middle of files called broken."""

    def do_GET(self):
        self.server.requests.append(self.path)
        if "broken" not in self.path:
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(TRAIN)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "tiny.bz2").write_bytes(bz2.compress(TRAIN))
    (folder / "tiny.t").write_bytes(TEST)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder)) as server:
        server.requests = []
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def remote(url: str, *names: str) -> Source:
    return replace(TINY, parts=tuple(Part(f"{name}.xz", f"{url}/{name}") for name in names))


def test_a_download_is_recorded_and_not_repeated(server, places, capsys):
    source = remote(server.url, "tiny.bz2", "tiny.t")
    data = load(source, places)
    np.testing.assert_array_equal(data.X, TINY_X)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Downloading tiny.bz2" in shown.err
    assert "known_hash" not in shown.err

    record = json.loads((places.cache / HASHES).read_text())
    assert record == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in data.source}
    assert sorted(path.name for path in places.cache.iterdir()) == [HASHES, "tiny.bz2", "tiny.t"]

    np.testing.assert_array_equal(load(source, places, may_download=False).X, TINY_X)
    assert server.requests == ["/tiny.bz2", "/tiny.t"]


def test_a_changed_download_is_refused_until_it_is_deleted(server, places):
    source = remote(server.url, "tiny.bz2", "tiny.t")
    load(source, places)
    changed = places.cache / "tiny.t"
    changed.write_bytes(b"1 1:9\n")
    with pytest.raises(ValueError, match=r"tiny\.t has changed since it was downloaded.*Delete the file"):
        load(source, places)
    changed.unlink()
    np.testing.assert_array_equal(load(source, places).X, TINY_X)
    assert server.requests == ["/tiny.bz2", "/tiny.t", "/tiny.t"]


def test_without_need_or_leave_nothing_is_downloaded(server, places):
    with pytest.raises(FileNotFoundError, match="download=False"):
        load(remote(server.url, "tiny.bz2"), places, may_download=False)
    (places.data_home / "tiny.bz2").write_bytes(bz2.compress(TRAIN + TEST))
    np.testing.assert_array_equal(load(remote(server.url, "tiny.bz2"), places).X, TINY_X)
    assert server.requests == []


def test_an_unreadable_record_is_named(server, places):
    source = remote(server.url, "tiny.bz2", "tiny.t")
    load(source, places)
    for content in ("{", "7"):
        (places.cache / HASHES).write_text(content)
        with pytest.raises(ValueError, match=r"sha256\.json cannot be read.*Delete it"):
            load(source, places)


# pooch leaves the connection of a failed download to the garbage collector, which may run in any later test.
LEFT_OPEN = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


@LEFT_OPEN
@pytest.mark.parametrize("name", ["gone.bz2", "broken.bz2"])
def test_a_failed_download_leaves_nothing(name, server, places):
    with pytest.raises(FileNotFoundError, match=rf"download of {server.url}/{name} failed"):
        load(remote(server.url, name), places)
    gc.collect()
    assert list(places.cache.iterdir()) == []


@LEFT_OPEN
def test_offline_says_where_the_file_is_expected(places, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as closed:
        source = remote(f"http://127.0.0.1:{closed.server_port}", "tiny.bz2")
    with pytest.raises(FileNotFoundError) as caught:
        load(source, places)
    gc.collect()
    for word in ("tiny.bz2.xz or tiny.bz2", *map(str, vars(places).values()), "failed", "set PAIRLOOM_DATA"):
        assert word in str(caught.value)


def command(folder: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    plain = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8", "PAIRLOOM_DATA": ""}
    env = {**os.environ, **plain, "XDG_CACHE_HOME": str(folder / "cache"), **env}
    env.pop("FORCE_COLOR", None)
    pairloom = Path(sysconfig.get_path("scripts")) / "pairloom"
    return subprocess.run(
        [pairloom, "datasets", *args], env=env, capture_output=True, encoding="utf-8", timeout=100, check=False
    )


def test_the_command_lists_what_is_there_without_reading_it(tmp_path):
    (tmp_path / "a9a.xz").touch()
    (tmp_path / "ijcnn1.bz2").touch()
    done = command(tmp_path, PAIRLOOM_DATA=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    lines = {line.split()[1]: line for line in done.stdout.splitlines() if line.startswith("│ ") and line[2] != " "}
    assert list(lines) == list(DATASETS)
    assert str(tmp_path / "a9a.xz") in lines["a9a"]
    assert all(word in lines["a9a"] for word in ("32,561", "123", "24.1 %"))
    assert "not found; can be downloaded" in lines["rcv1"]
    assert "not found; no download available" in lines["reuters.moneyfx"]
    assert "ijcnn1.test.xz not found; can be downloaded" in done.stdout
    assert list(tmp_path.glob("cache/*")) == []


def test_the_command_explains_itself_and_its_errors(tmp_path):
    assert "Example: pairloom datasets" in CliRunner().invoke(app, ["datasets", "--help"]).stdout
    plain = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb", "XDG_CACHE_HOME": str(tmp_path)}
    for args, asked in ((["--data-home", "nowhere"], ""), ([], "nowhere")):
        done = CliRunner().invoke(app, ["datasets", *args], env={**plain, "PAIRLOOM_DATA": asked})
        assert done.exit_code == 2
        assert "nowhere" in done.stderr
        assert "Traceback" not in done.stderr
