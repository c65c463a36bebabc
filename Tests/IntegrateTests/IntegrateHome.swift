import Linux
import TestSupport

@testable import Integrate

/// The files of hosts in a home directory of a test's own.
struct IntegrateHome {
  let scratch: Scratch
  var environment = ["PATH": "/usr/bin:/bin"]
  var wrapPrefix = WrapPrefix(program: "/usr/bin/dormouse")

  init(_ files: [String: String]) throws { scratch = try Scratch(files) }

  var integration: Integration {
    // The directory belongs to another project, and has no files.
    Integration(
      context: HostContext(
        environment: environment, home: scratch.path, directory: "\(scratch.path)/project"),
      wrapPrefix: wrapPrefix, backupDirectory: "\(scratch.path)/state/integrate")
  }

  func inspect(_ host: IntegratedHost) -> [FileOutcome] { integration.inspect([host], for: nil) }

  @discardableResult
  func change(_ host: IntegratedHost, _ change: Integration.Change = .wrap) -> [FileOutcome] {
    var files = integration.inspect([host], for: change)
    for index in files.indices { integration.apply(&files[index]) }
    return files
  }

  func read(_ name: String) throws -> String { try readText("\(scratch.path)/\(name)") }

  /// The code of each server's reason, or its state, by the server's name.
  func states(_ host: IntegratedHost) -> [String: String] {
    let servers = inspect(host).flatMap(\.servers)
    return Dictionary(servers.map { ($0.name, $0.refusal?.code ?? $0.state.rawValue) }) { $1 }
  }
}
