"""The report as JSON: the model itself, nothing added and nothing left out."""

from wqlab_contracts.api.report import Report


def render_json(report: Report) -> str:
    return report.model_dump_json(indent=2, by_alias=True) + "\n"
