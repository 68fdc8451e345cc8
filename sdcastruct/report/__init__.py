"""Reports: what is known of a fit, as a page to read."""

from sdcastruct.report.write import write_report

__all__ = ["write_report"]
