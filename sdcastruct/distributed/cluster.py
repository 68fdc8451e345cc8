"""The cluster to work on."""

import contextlib
import os
from pathlib import Path

from distributed import Client, LocalCluster, default_client


@contextlib.contextmanager
def connected(client):
    """Yield a client: the one given, the current one, or that of a cluster of this machine's cores.

    A cluster that had to be started is closed at the end.
    """
    if client is None:
        with contextlib.suppress(ValueError):
            client = default_client()
    if client is not None:
        yield client
        return
    with (
        LocalCluster(threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, direct_to_workers=True) as own,
    ):
        yield own


def addresses(client):
    """Return the addresses of the workers that are alive."""
    return list(client.scheduler_info(n_workers=-1)["workers"])


def check_folder(client, folder):
    """Check that the driver and all workers can write into a folder; make it if need be."""
    folder = os.path.abspath(folder)
    try:
        Path(folder).mkdir(exist_ok=True)
        probe(folder)
    except OSError as error:
        raise _refused(folder, "the driver", error) from error
    for address, error in client.run(probe, folder, on_error="return").items():
        if error is not None:
            raise _refused(folder, f"the worker {address}", error) from error


def probe(folder):
    """Write a file into a folder and take it away."""
    file = Path(folder) / f"probe-{os.getpid()}"
    file.write_bytes(b"")
    file.unlink()


def _refused(folder, who, error):
    return ValueError(
        f"checkpoint={folder!r}: expected a folder that the driver and all workers can write into, "
        f"{who} cannot: {error}"
    )
