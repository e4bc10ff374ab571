"""What learns: frozen values with ``init``, ``run`` and ``score``."""
