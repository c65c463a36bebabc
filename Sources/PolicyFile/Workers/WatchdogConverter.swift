extension Converter where Value == Duration {
  /// The interval at which a worker sends `WATCHDOG=1`. The mapping `watchdog` of a policy is
  /// something else.
  static var watchdog: Converter {
    let interval = Converter.duration.checked {
      $0 >= .seconds(1)
        ? nil : Problem(message: "must be at least `1s`", suggestion: "write `watchdog: 30s`")
    }
    return Converter(
      expects: interval.expects, shape: interval.shape.called("duration, from `1s`"),
      write: interval.write
    ) { node in
      if case .mapping = node {
        return .problem(
          "is an interval here, such as `30s`; the deadlines are keys of `policy`",
          suggestion: "write `policy: { watchdog: { launch: 1m } }`")
      }
      return interval.convert(node)
    }
  }
}
