import Policy

extension PolicyKeys {
  static var trim: PolicyKey {
    PolicyKey(
      "trim", about: "when memory that a running worker doesn't use leaves RAM ([trim](trim.md))"
    ) {
      PolicyKey(
        "after", \.trim.after, as: Converter.duration.or("never"),
        about: """
          the time that a worker has run, since its launch or its last wake, before it is trimmed; \
          `never`: only on request, or by the [ladder](#ladder)
          """,
        less: "running workers are trimmed sooner", more: "running workers are trimmed later",
        meanings: ["never": "running workers are trimmed on request only"])
      PolicyKey(
        "every", \.trim.every, as: .duration.notZero,
        about: """
          the shortest time between two trims of a worker. It doubles for a worker that needs more \
          than a third of the trimmed memory again
          """,
        less: "workers are trimmed more often", more: "workers are trimmed less often")
      PolicyKey(
        "min_gain", \.trim.minGain, as: .size,
        about: "a worker isn't trimmed if less memory than this is expected to leave RAM",
        less: "workers are trimmed for less memory",
        more: "workers are trimmed for more memory only")
      PolicyKey(
        "mechanism", \.trim.mechanism, as: .choice,
        about: """
          `swap`: the kernel's swap, which includes zram. `auto`: the best one that the machine \
          permits. `off`: never trimmed, also not on request
          """,
        meanings: [
          "off": "workers are never trimmed",
          "auto": "the best mechanism of the machine trims workers",
          "swap": "only the kernel's swap trims workers",
        ])
    }
  }
}
