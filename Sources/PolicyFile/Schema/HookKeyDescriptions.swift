import Policy

/// A sentence on each key of `on:`, for the JSON Schema.
enum HookKeyDescriptions {
  static let all = texts(Hooks.Event.allCases)
  static let ofWorker = texts(Hooks.Event.allCases.filter { !$0.isOfMachine })

  private static func texts(_ events: [Hooks.Event]) -> [String: String] {
    var result = [
      "on":
        "Commands that are run when something happens, with the event as JSON on standard input.",
      "on.timeout": "After this a command is ended, 1s to 10m. Default: 10s.",
    ]
    for event in events { result["on.\(event.rawValue)"] = text(event) }
    return result
  }

  private static func text(_ event: Hooks.Event) -> String {
    switch event {
    case .state: "A worker has changed its state."
    case .failed: "An operation on a worker failed, or the worker crashed."
    case .refused: "A request was refused."
    case .memory: "A worker got a request to free memory, or has freed some."
    case .pressure: "The level of memory pressure has changed."
    case .jetsam: "Workers were terminated for lack of memory."
    case .policy: "The configuration has changed."
    case .shadow: "Shadow mode: what would have been done."
    case .daemon: "The daemon has started."
    case .launching: "A worker is launched."
    case .foreground: "A worker is in the foreground."
    case .background: "A worker is in the background."
    case .suspended: "A worker was suspended."
    case .hibernated: "A worker was hibernated."
    case .terminated: "A worker has ended, for whatever reason."
    case .woken: "A worker runs again after it slept."
    case .crashed: "A worker has ended with a failure, or because it missed a deadline."
    case .terminatedForMemory: "A worker was terminated for lack of memory."
    case .willTerminate:
      "A worker will be terminated for lack of memory, unless it is protected in time (`terminate: ask`)."
    case .overLimit: "A worker's footprint was over one of its `limits.footprint`."
    case .leakSuspected: "A worker may lose memory: its footprint was larger at each suspension."
    case .everything: "Any event."
    }
  }
}
