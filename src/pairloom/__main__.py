"""Entry point of ``python -m pairloom``."""

from pairloom.cli import app

if __name__ == "__main__":
    app()
