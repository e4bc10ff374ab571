"""``python -m pairloom``: the command."""

from pairloom.cli import app

if __name__ == "__main__":
    app()
