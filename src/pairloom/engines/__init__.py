"""Engines: different loops that compute the same iterates, up to rounding.

- ``base``: the interface of an engine, and the choice of an engine. ``state``: the arrays that engines update.
  ``arguments``: the arguments of compiled loops.
- ``reference``: the specification in NumPy, one row at a time. All other engines are tested against it.
- ``fused`` and ``fused_steps``: compiled loops over dense rows.
- ``sparse``, ``sparse_loops`` and ``sparse_steps``: compiled loops over CSR rows.
- ``cells``: steps per coordinate over maps of cells, such as forests.
- ``blocked`` and ``blocked_...``: many models at once, for ``Grid``.
"""
