"""A drawing as SVG."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from smartmem_mlir.report.pictures.drawing import LINE_COLOR, PAPER, TEXT_COLOR, Color, Drawing

_BASELINE = 9


def render_svg(drawing: Drawing) -> str:
    """The drawing as a document of its own; each element's place has its logical index as a tooltip."""
    size = f'width="{drawing.width}" height="{drawing.height}" viewBox="0 0 {drawing.width} {drawing.height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(drawing.title)} '
        'font-family="ui-monospace, DejaVu Sans Mono, monospace" font-size="12">',
        f"<title>{escape(drawing.title)}</title>",
        '<pattern id="pad" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 6L6 0" stroke="#999"/>'
        "</pattern>",
        f'<rect width="100%" height="100%" fill="{_hex(PAPER)}"/>',
    ]
    for box in drawing.rectangles:
        place = f'x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}"'
        tip = f"<title>{escape(box.logical or 'padding')}</title>"
        lines.append(f'<rect {place} fill="{_hex(box.fill)}" stroke="{_hex(LINE_COLOR)}">{tip}</rect>')
        if box.hatched:
            lines.append(f'<rect {place} fill="url(#pad)" pointer-events="none"/>')
    for label in drawing.labels:
        lines.append(
            f'<text x="{label.x}" y="{label.y + _BASELINE}" fill="{_hex(TEXT_COLOR)}" '
            f'pointer-events="none">{escape(label.text)}</text>'
        )
    return "\n".join([*lines, "</svg>"]) + "\n"


def _hex(color: Color) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)
