"""Write the golden files anew. Read the difference before you commit it."""

from report_examples import EXAMPLES

from wqlab_server.reports.render_text import render_text

if __name__ == "__main__":
    from pathlib import Path

    for name, make in EXAMPLES.items():
        (Path(__file__).parent / "golden" / f"{name}.txt").write_text(render_text(make()))
