import Journal
import Lifecycle
import Policy

extension Notice {
  /// The names of this event in `on:`.
  var hookEvents: Set<Hooks.Event> {
    var names: Set<Hooks.Event> = [.everything]
    if let name = Hooks.Event(rawValue: kind.rawValue) { names.insert(name) }
    if occasion == .notice { names.insert(.willTerminate) }
    if occasion == .limit { names.insert(.overLimit) }
    if occasion == .leakSuspected { names.insert(.leakSuspected) }
    guard kind == .state, let to else { return names }
    if let name = Hooks.Event(rawValue: to.rawValue) { names.insert(name) }
    if from == .suspended || from == .hibernated, to == .foreground || to == .background {
      names.insert(.woken)
    }
    guard to == .terminated else { return names }
    switch cause {
    case .pressure: names.insert(.terminatedForMemory)
    case .watchdog, .failed: names.formUnion([.crashed, .failed])
    case .exited(let status) where status != .exited(0): names.formUnion([.crashed, .failed])
    default: break
    }
    return names
  }
}
