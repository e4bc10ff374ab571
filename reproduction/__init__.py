"""The experiments of the FPOGD paper (ACML 2023), run from a clone: ``python -m reproduction``.

An experiment is a list of cells (:mod:`.cells`). Each cell is run once and recorded once (:mod:`.results`).
``configs/*.toml`` configure the experiments; :mod:`.report` writes a page of the results.
"""
