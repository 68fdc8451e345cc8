"""pystruct's models under our solvers; pystruct itself is never imported."""

from sdcastruct.interop.pystruct.wrap import wrap

__all__ = ["wrap"]
