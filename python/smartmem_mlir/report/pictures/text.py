"""A layout as text: a line for each row, texels in brackets."""

from __future__ import annotations

from smartmem_mlir.report.pictures.layout import PADDING, LayoutPicture

PAD_MARK = "."
MORE = "..."


def describe(picture: LayoutPicture) -> str:
    """One line: shape, storage, physical extents, and how much of it is padding."""
    logical = "x".join(map(str, picture.shape)) or "scalar"
    depth, height, width, lanes = picture.places.shape
    if picture.storage == "buffer":
        extents = "x".join(map(str, picture.physical_shape))
        where = f"a buffer of {extents}"
    else:
        third = {"image2d_array": f", {depth} layers", "image3d": f", depth {depth}"}.get(picture.storage, "")
        article = "an" if picture.storage.startswith("image") else "a"
        where = f"{article} {picture.storage} of {width}x{height} texels (width x height){third}"
    total = depth * height * width * lanes
    padding = f"{picture.padding} of {total} places are padding ({picture.pad:g})" if picture.padding else "no padding"
    return f"{logical} in {where}; {padding}"


def render_text(picture: LayoutPicture, rows: int = 32, columns: int = 16) -> str:
    """The picture as text.

    Args:
        picture: What to draw.
        rows: Rows of each layer that are shown.
        columns: Places of each row, texels for texel storages, that are shown.

    Returns:
        Lines; a place reads as its logical index, padding as a dot.
    """
    depth, height, width, lanes = picture.places.shape
    largest = ",".join(str(extent - 1) for extent in picture.shape)
    cell = max(len(largest), 1)
    lines = [describe(picture)]
    label = len(f"y={height - 1}")
    for layer in range(depth):
        if depth > 1:
            lines.append(f"{'z' if picture.storage == 'image3d' else 'layer'} {layer}")
        bracket = 2 if lanes > 1 else 0
        heads = [f"x={x}".ljust(lanes * (cell + 1) - 1 + bracket) for x in range(min(width, columns))]
        lines.append(" ".join([" " * label, *heads, *([MORE] if width > columns else [])]).rstrip())
        for y in range(min(height, rows)):
            texels = []
            for x in range(min(width, columns)):
                names = [_name(picture, int(place)).rjust(cell) for place in picture.places[layer, y, x]]
                texels.append(f"[{' '.join(names)}]" if lanes > 1 else names[0])
            lines.append(" ".join([f"y={y}".ljust(label), *texels, *([MORE] if width > columns else [])]))
        if height > rows:
            lines.append(f"{MORE} {height - rows} more rows")
    return "\n".join(lines) + "\n"


def _name(picture: LayoutPicture, place: int) -> str:
    return PAD_MARK if place == PADDING else ",".join(map(str, picture.index(place))) or "()"
