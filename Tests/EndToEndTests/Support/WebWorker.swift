import TestSupport

/// An unmodified HTTP server with state in memory, in the foreground once it listens.
struct WebWorker {
  let port: UInt16
  var megabytes = 4
  var cacheMegabytes = 0
  var name = "web"
  var more = ""

  init(megabytes: Int = 4, cacheMegabytes: Int = 0, name: String = "web", more: String = "") throws
  {
    port = try freePort()
    self.megabytes = megabytes
    self.cacheMegabytes = cacheMegabytes
    self.name = name
    self.more = more
  }

  /// Its entry below `workers:`. An answer takes longer than a tick of TCP's clock, so that the daemon knows
  /// that it was sent: a worker with a request that may be unanswered would be woken.
  func entry(_ setting: Setting = .traced) -> String {
    let script = setting == .ordinaryUser ? "http_state.py" : Surroundings.fixture("http_state.py")
    return """
        \(name):
          command: [\(Surroundings.python), "\(script)", "--port", "\(port)", "--megabytes",
            "\(megabytes)", "--cache-mb", "\(cacheMegabytes)", "--delay-ms", "20"]
          readiness: { tcp: \(port) }
          \(more)

      """
  }
}
