"""A real cluster of two worker processes, one of which is killed: the bytes are those of one process."""

import importlib
import os
import signal
import threading
import time

import numpy as np
import pytest

from pairloom.base.tree import same
from tests.conftest import make_stream

dask = pytest.importorskip("dask", reason="dask is missing: pip install -e .[dask]")
distributed = pytest.importorskip("distributed", reason="distributed is missing: pip install -e .[dask]")
da = importlib.import_module("dask.array")

from pairloom.dask import FPOGD  # noqa: E402

N = 8000


@pytest.mark.filterwarnings("ignore")
def test_a_killed_worker_changes_nothing():
    X, y = make_stream("normal", N, 4)
    Xs, ys = da.from_array(X, chunks=(1000, 4)), da.from_array(y, chunks=1000)
    model = FPOGD(random_state=0, rounds=2)
    with dask.config.set(scheduler="sync"):
        alone = model.fit(Xs, ys).to_local()
    quiet = {"distributed.nanny.environ": {}, "distributed.scheduler.allowed-failures": 10}
    with dask.config.set(quiet), distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster, distributed.Client(cluster) as client:  # fmt: skip
        pids = list(client.run(os.getpid).values())
        killed = []

        def kill():
            while not any(client.processing().values()):
                time.sleep(0.01)
            time.sleep(0.2)
            os.kill(pids[0], signal.SIGKILL)
            killed.append(pids[0])

        thread = threading.Thread(target=kill)
        thread.start()
        made = FPOGD(random_state=0, rounds=2, client=client).fit(Xs, ys).to_local()
        thread.join()
        assert killed
        assert pids[0] not in client.run(os.getpid).values()
    assert same(made.state_.stream, alone.state_.stream)
    assert np.array_equal(made.decision_function(X), alone.decision_function(X))
