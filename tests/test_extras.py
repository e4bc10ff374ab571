"""Extras: everything else works without them, and errors name the missing one; in real processes."""

import os
import re
import sysconfig
import tomllib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pooch
import pytest

from pairloom import save
from pairloom.base.extras import import_extra
from pairloom.data.files import data_folders
from pairloom.systems import SPAM
from tests.commands import NOTICE, Forks

ROOT = Path(__file__).parent.parent
EXTRAS = ("dask", "distributed", "matplotlib", "onnx", "pooch", "pyarrow", "rich", "typer")
COMMAND = Path(sysconfig.get_path("scripts")) / "pairloom"

BLOCK = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""

FIT = """
import numpy as np
import pairloom
from pairloom.systems import FPOGD

X = np.random.default_rng(0).normal(size=(60, 3))
y = X[:, 0] > 0.5
print(FPOGD(random_state=0).fit(X, y).predict(X).shape)
model = pairloom.AUCClassifier(random_state=0).fit(X, y)
print(model.predict(X).shape)
"""

DOWNLOAD = """
from pathlib import Path
from pairloom.data.files import check_unchanged, download

path = download({url!r}, Path({folder!r}))
check_unchanged(path)
print(path.read_text())
"""


IMPORTS = f"""
sys.modules["pandas"] = None  # scikit-learn imports it if it is installed, and it imports pyarrow
import numba, scipy.sparse.linalg, sklearn.utils.validation, threadpoolctl
del sys.modules["pandas"]

assert not {set(EXTRAS)!r} & sys.modules.keys()
"""
"""Slow imports that are not extras."""


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    forks = Forks(tmp_path_factory.mktemp("forks"), IMPORTS, 'exec(task["code"], {"__name__": "__main__"})')
    yield forks
    forks.close()


@pytest.fixture
def run(forks):
    """Run code in a process in which some packages are not installed."""

    def call(code, *absent, cwd="."):
        return forks.run({"code": BLOCK.format(names=absent) + code, "cwd": cwd, "env": dict(os.environ)})

    return call


def last_line(done):
    return done.stderr.strip().splitlines()[-1]


def test_learning_needs_no_extra_and_drawing_says_which(run):
    done = run(FIT + "model.plot_race()", *EXTRAS)
    assert done.stdout == "(60,)\n(60,)\n"
    assert last_line(done).endswith(
        'Drawing a race needs matplotlib, which is not installed: pip install "pairloom[plot]"'
    )


def test_a_page_needs_no_extra_and_a_figure_of_the_stream_says_which(run, tmp_path):
    done = run(FIT.replace("AUCClassifier(", "AUCClassifier(monitor='page.html', ") + "model.plot_stream()", *EXTRAS,
               cwd=tmp_path)  # fmt: skip
    assert (tmp_path / "page.html").read_text().endswith("</html>\n")
    assert last_line(done).startswith("pairloom.base.extras.MissingExtra: Drawing a stream needs matplotlib")


@pytest.fixture
def address(tmp_path, monkeypatch):
    """The URL of a file on a local server."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "tiny.t").write_text("1 1:7")
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/tiny.t"
        server.shutdown()
        thread.join()


def test_a_download_without_pooch_names_the_extra(run, tmp_path, address):
    done = run(DOWNLOAD.format(url=address, folder=str(tmp_path / "cache")), "pooch")
    assert last_line(done).endswith(
        'The download of tiny.t needs pooch, which is not installed: pip install "pairloom[data]"'
    )


def test_a_download_without_rich_has_no_bar(run, tmp_path, address):
    done = run(DOWNLOAD.format(url=address, folder=str(tmp_path / "cache")), "rich", "typer", "matplotlib")
    assert (done.stdout, done.stderr) == ("1 1:7\n", "")


def test_files_at_hand_are_read_without_any_extra(run, tmp_path):
    (tmp_path / "a.t").write_text("1 1:7\n2 2:1\n")
    code = (
        "from pairloom.data.catalogue import Part, Source; from pairloom.data.datasets import load; "
        "from pairloom.data.files import data_folders; "
        "source = Source('a', (Part('a.t'),), n_features=2, n_negative=1, n_positive=1, labels=(1, 2)); "
        f"print(load(source, data_folders({str(tmp_path)!r})).X.tolist())"
    )
    done = run(code, *EXTRAS)
    assert (done.stdout, done.stderr) == ("[[7.0, 0.0], [0.0, 1.0]]\n", "")


@pytest.mark.parametrize("asked", ["", "relative", "/somewhere"])
def test_the_cache_is_where_pooch_has_it(asked, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", asked)
    monkeypatch.delenv("PAIRLOOM_DATA", raising=False)
    assert data_folders().cache == Path(pooch.os_cache("pairloom"))


@pytest.fixture
def command(run):
    """The command as installed, or as a module."""

    def call(*args, absent, script=True, cwd="."):
        start = f"run_path({str(COMMAND)!r}" if script else "run_module('pairloom'"
        code = f"sys.argv = {['pairloom', *args]!r}\nimport runpy\nrunpy.{start}, run_name='__main__')"
        return run(code, *absent, cwd=cwd)

    return call


@pytest.mark.parametrize("script", [True, False], ids=["script", "module"])
@pytest.mark.parametrize("absent", [("typer",), ("rich",), EXTRAS], ids=" ".join)
def test_the_command_names_the_extra_in_one_sentence(command, script, absent):
    package = "typer" if "typer" in absent else "rich"
    sentence = f'The command pairloom needs {package}, which is not installed: pip install "pairloom[cli]"\n'
    done = command("systems", absent=absent, script=script)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence)


def test_the_demo_names_the_extra_before_it_starts(command, tmp_path):
    done = command("demo", absent=("matplotlib",), cwd=tmp_path)
    sentence = 'The demo needs matplotlib, which is not installed: pip install "pairloom[plot]"\n'
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence)
    assert list(tmp_path.iterdir()) == []


def test_export_names_the_extra_and_writes_nothing(command, tmp_path):
    save(SPAM(random_state=0).fit([[0.0], [1.0], [2.0]], [0, 1, 1]), tmp_path / "model")
    done = command("export", "model", "out.onnx", absent=("onnx",), cwd=tmp_path)
    sentence = 'pairloom export needs onnx, which is not installed: pip install "pairloom[onnx]"\n'
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize(("text", "code"), [("1 1:2\n-1 2:1\n", 0), ("a,label\n1,0\n2,1\n", 1)], ids=["libsvm", "csv"])
def test_fit_needs_pyarrow_for_all_but_libsvm(command, tmp_path, text, code):
    (tmp_path / "rows").write_text(text)
    done = command("fit", "rows", "--system", "SPAM", absent=("pyarrow", "matplotlib", "pooch"), cwd=tmp_path)
    assert done.returncode == code, done.stderr
    sentence = 'Reading CSV needs pyarrow, which is not installed: pip install "pairloom[io]"\n'
    assert done.stderr.replace(NOTICE, "") == (sentence if code else "")


@pytest.mark.parametrize("args", [("--version",), ("systems", "--help"), ("datasets",)], ids=" ".join)
def test_commands_that_draw_and_download_nothing_need_only_their_own_extra(command, args, monkeypatch):
    monkeypatch.delenv("PAIRLOOM_DATA", raising=False)
    done = command(*args, absent=("matplotlib", "pooch"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_a_package_that_is_there_but_broken_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "cracked.py").write_text("import nowhere_to_be_found")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'nowhere_to_be_found'"):
        import_extra("cracked", "plot", "A picture")


def page_packages():
    """The table in docs/dependencies.md: the group, "always" or an extra -> its packages."""
    page = (ROOT / "docs" / "dependencies.md").read_text()
    table = page.split("| package | comes with | why |\n|---|---|---|\n")[1].split("\n\n")[0]
    found: dict[str, set[str]] = {}
    for line in table.splitlines():
        packages, group = line.lower().strip("| ").split(" | ")[:2]
        found.setdefault(group.strip("`"), set()).update(packages.split(", "))
    return found


def test_the_page_lists_exactly_the_dependencies():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    names = {
        group: {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}
        for group, requirements in {"always": project["dependencies"], **extras}.items()
    }
    listed = ("always", "plot", "data", "cli", "io", "dask", "river", "onnx", "explain")
    wanted = {group: names[group] for group in listed}
    assert page_packages() == {**wanted, "reproduce": names["reproduce"] - {"pairloom"}}
    assert set().union(*(names[extra] for extra in ("plot", "data", "cli", "io", "dask", "onnx"))) == set(EXTRAS)
    assert extras["all"] == ["pairloom[plot,data,cli,io,dask,onnx]"]
    assert all("pairloom[all" in extras[group][0] for group in ("test", "reproduce", "dev"))
