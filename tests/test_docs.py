"""Every snippet in the readme and in docs runs, every command exists, every page can be reached."""

import re
import shlex
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from pairloom.cli.commands import app
from reproduction.__main__ import options

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES)
def test_python_snippets_run_in_order(page, capsys, tmp_path, monkeypatch):
    snippets = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, page, "exec"), space)
    if page == "README.md":
        auc, text = capsys.readouterr().out.splitlines()[:2]
        assert float(auc) > 0.95
        assert text.startswith("AUCClassifier(")
    if page == "docs/fraud.md":
        assert f"`{space['model'].changes_}`" in (ROOT / page).read_text()
        assert abs(len(space["alerts"]) - 0.02 * 19_500) <= 17
        assert "row 12,004<" in (tmp_path / "monitor.html").read_text("utf-8")


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md"])
def test_commands_exist(page):
    makefile = (ROOT / "Makefile").read_text()
    for block in re.findall(r"```bash\n(.*?)```", (ROOT / page).read_text(), re.DOTALL):
        for line in block.splitlines():
            command = shlex.split(line, comments=True)
            if command[0] == "pairloom":
                parse(command[1:])
            elif command[:3] == ["python", "-m", "reproduction"]:
                options().parse_args(command[3:])
            else:
                assert command[0] == "make", line
                assert re.search(rf"^{command[1]}:", makefile, re.MULTILINE), line


def parse(words: list[str]) -> None:
    """Raise unless the command line takes these words; runs nothing."""
    commands = get_command(app)
    assert isinstance(commands, TyperGroup)
    with commands.make_context("pairloom", words[:]) as context:
        name, command, rest = commands.resolve_command(context, words)
        assert command is not None
        command.make_context(name, rest, parent=context)


def test_ci_runs_lint_and_exactly_the_readmes_test_command():
    ci = (ROOT / ".ci" / "run").read_text().splitlines()
    assert ci[-3:] == ["make lint", "make toy", "make test"]
    assert "make test " in (ROOT / "README.md").read_text()


def test_the_readme_is_one_screen_and_a_half_and_links_to_every_page():
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) <= 75
    assert set(re.findall(r"\]\((docs/[^)#]+\.md)\)", readme)) == set(PAGES) - {"README.md"}


def test_links_lead_somewhere():
    for page in [*PAGES, "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / page).read_text()):
            assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}"


def test_links_to_figures_of_the_report_lead_to_them():
    report = (ROOT / "docs/reproduction/index.html").read_text()
    linked = re.findall(r"^\[\w+\]: reproduction/index.html#(.+)$", (ROOT / "docs/theory.md").read_text(), re.MULTILINE)
    assert len(linked) == 5
    assert all(f'id="{figure}"' in report for figure in linked)
