"""The paper's experiments, run by one command: ``pairloom reproduce``.

An experiment is a list of cells (:mod:`.cells`), each run once and recorded once (:mod:`.results`). What is run is
written in ``configs/*.toml``; how it is shown, in :mod:`.report`.
"""
