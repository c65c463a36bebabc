// The common elements of all pictures: text, frame and colours.

/// Escapes any text as text of XML 1.0. Characters that XML can't represent are left out.
public func xmlText(_ text: String) -> String {
  text.unicodeScalars.reduce(into: "") { result, scalar in
    switch scalar {
    case "&": result += "&amp;"
    case "<": result += "&lt;"
    case ">": result += "&gt;"
    case "\"": result += "&quot;"
    case "\t", "\n", "\r": result.unicodeScalars.append(scalar)
    case _ where scalar.value < 0x20 || scalar.value == 0xFFFE || scalar.value == 0xFFFF: break
    default: result.unicodeScalars.append(scalar)
    }
  }
}

/// The opening tag of a picture of that size, in pixels.
public func svgOpening(width: Double, height: Double) -> String {
  let (width, height) = (fixed(width, 0), fixed(height, 0))
  return """
    <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(width) \(height)" width="\(width)" \
    height="\(height)" role="img" font-family="system-ui, Helvetica, Arial, sans-serif">
    """
}

/// A line of text. `kind` is the CSS class that gives its colour.
public func svgText(
  _ x: Double, _ y: Double, _ text: String, size: Int, kind: String = "ink",
  weight: String = "normal", anchor: String = "start"
) -> String {
  """
  <text class="\(kind)" x="\(fixed(x, 1))" y="\(fixed(y, 1))" font-size="\(size)" \
  font-weight="\(weight)" text-anchor="\(anchor)">\(xmlText(text))</text>
  """
}

/// Style rules for light and dark backgrounds: `back` behind everything, `ink` and `dim` for text,
/// `line` for the grid.
public enum SVGPalette {
  public static let light =
    ".back { fill: #ffffff } .ink { fill: #1f2328 } .dim { fill: #59636e } "
    + ".line { stroke: #d1d9e0 }"
  public static let dark =
    ".back { fill: #0d1117 } .ink { fill: #e6edf3 } .dim { fill: #9198a1 } "
    + ".line { stroke: #3d444d }"
}
