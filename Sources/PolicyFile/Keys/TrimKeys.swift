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
          `swap`: the kernel's swap, which includes zram. `userfaultfd`: the memory is in a \
          compressed image, and the daemon puts back what is touched; this needs no swap, but a \
          daemon that may use userfaultfd in full, and not `hibernate.encrypt`. `auto`: swap where \
          it is on, otherwise userfaultfd; with `hibernate.enabled: false`, swap; with \
          `hibernate.encrypt`, swap, and on request only. `off`: never trimmed, also not on request
          """,
        meanings: [
          "off": "workers are never trimmed",
          "auto": "swap trims workers where it is on, and userfaultfd elsewhere",
          "swap": "only the kernel's swap trims workers",
          "userfaultfd": "only userfaultfd trims workers: their memory is in images",
        ])
    }
  }
}
