import Glibc
import Linux
import Policy

extension ResourceLimits {
  /// The limits for setrlimit(2), in a fixed order.
  public var spawnLimits: [SpawnTerms.Limit] {
    Resource.allCases.compactMap { resource in
      resources[resource].map { limit in
        SpawnTerms.Limit(
          name: "`\(resource.rawValue)`", resource: resource.number, soft: limit.soft ?? .max,
          hard: limit.hard ?? .max)
      }
    }
  }
}

extension ResourceLimits.Resource {
  fileprivate var number: Int32 {
    let resource =
      switch self {
      case .nofile: RLIMIT_NOFILE
      case .nproc: __RLIMIT_NPROC
      case .core: RLIMIT_CORE
      case .memlock: __RLIMIT_MEMLOCK
      case .stack: RLIMIT_STACK
      case .data: RLIMIT_DATA
      case .fsize: RLIMIT_FSIZE
      case .cpu: RLIMIT_CPU
      case .sigpending: __RLIMIT_SIGPENDING
      case .msgqueue: __RLIMIT_MSGQUEUE
      case .addressSpace: RLIMIT_AS
      }
    return Int32(resource.rawValue)
  }
}
