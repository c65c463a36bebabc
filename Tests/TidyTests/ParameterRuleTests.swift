import Testing

@Suite("Parameters without a label") struct ParameterRuleTests {
  private static func findings(_ text: String, _ path: String = "Sources/Some/File.swift")
    -> [String]
  {
    ParameterRule.rule(SourceFile(path: path, text: text)).map(\.detail)
  }

  @Test("The rule finds functions and initialisers with three or more parameters without a label")
  func three() {
    let text = """
      func two(_ a: Int, _ b: Int, at c: Int) {}
      func three(_ a: Int, _ b: [String: Int], _ c: Int = 3) {}
      private static func four<T: P>(
        _ a: Dictionary<String, T>, _ b: (Int, Int),
        _ c: inout T, _ d: String = "a, b)"
      ) {}
      @inlinable public convenience init?(_ a: Int, _ b: Int, _ c: Int) {}
      let a = three(_a, _b, _c)
      self.init(_ x, _ y, _ z)
      """
    let expected = [
      "2: three has 3", "3: four has 4", "7: init has 3",
    ].map { "Sources/Some/File.swift:\($0) parameters without a label" }
    #expect(Self.findings(text) == expected)
    #expect(Self.findings(text, "Tests/Some/File.swift").isEmpty)
  }

  @Test func `The rule permits parameters without a label for closures and coordinates`() {
    let text = """
      func each(_ a: Int, _ b: Int, _ body: (Int, Int) throws -> Void) {}
      func then(_ a: Int, _ b: Int, _ body: @escaping () -> Void) {}
      func label(_ x: Double, _ y: Double, _ text: String, size: Int) {}
      func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double) {}
      """
    #expect(Self.findings(text).isEmpty)
  }
}
