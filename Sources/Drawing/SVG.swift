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

/// A picture with its own background, which is dark if the viewer prefers that. Its style rules are
/// `ink` and `dim` for text, `line` for the grid, and those that are given.
///
/// - Parameters:
///   - width: pixels, as `height` is.
///   - title: what screen readers read, with `description`.
///   - light: further style rules.
///   - dark: these rules for a dark background.
public func svgDocument(
  width: Double, height: Double, title: String, description: String? = nil, light: String,
  dark: String, elements: [String]
) -> String {
  let (width, height) = (fixed(width, 0), fixed(height, 0))
  let about = description.map { "\n<desc>\(xmlText($0))</desc>" } ?? ""
  let head = """
    <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(width) \(height)" width="\(width)" \
    height="\(height)" role="img" font-family="system-ui, Helvetica, Arial, sans-serif">
    <title>\(xmlText(title))</title>\(about)
    <style>
    .back { fill: #ffffff } .ink { fill: #1f2328 } .dim { fill: #59636e } .line { stroke: #d1d9e0 }
    \(light)
    @media (prefers-color-scheme: dark) {
    .back { fill: #0d1117 } .ink { fill: #e6edf3 } .dim { fill: #9198a1 } .line { stroke: #3d444d }
    \(dark)
    }
    </style>
    <rect class="back" width="100%" height="100%" rx="6"/>
    """
  return ([head] + elements + ["</svg>", ""]).joined(separator: "\n")
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

/// A straight line. `kind` is the CSS class that gives its colour.
public func svgLine(
  _ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, kind: String = "line"
) -> String {
  """
  <line class="\(kind)" x1="\(fixed(x1, 1))" y1="\(fixed(y1, 1))" x2="\(fixed(x2, 1))" \
  y2="\(fixed(y2, 1))"/>
  """
}
