import ArgumentParser
import Control
import Glibc
import Linux

struct InitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "init", abstract: "Write a dormouse.yaml for this directory.",
    discussion: """
      A file of another supervisor in the directory is converted, as `dormouse import` does: a \
      compose file, a process-compose.yaml, a Procfile or a supervisord.conf, the first of these. \
      Without one the file has an example with comments. A dormouse.yaml that exists is never \
      changed.

      Examples:
        dormouse init && dormouse up
      """)

  private static let sources =
    ["compose", "docker-compose", "process-compose"].flatMap { ["\($0).yaml", "\($0).yml"] }
    + ["Procfile", "supervisord.conf"]

  private static let result = "dormouse.yaml"

  func run() throws {
    for name in [Self.result, "dormouse.yml"] where !isAbsent(name) {
      throw CommandFailure(
        .cannotCreate, "nothing written: \(name) already exists in this directory")
    }
    let present = Self.sources.filter { fileStatus(of: $0) != nil }
    guard let source = present.first else { return try writeExample() }
    try ImportCommand.parse([source, "--output", Self.result]).run()
    Output.complain(
      "\(Self.result) is written from \(source): read its comments, then `dormouse up` starts "
        + "the workers")
    for other in present.dropFirst() {
      Output.complain("not converted: \(other) (`dormouse import \(other)` prints the result)")
    }
  }

  private func writeExample() throws {
    do throws(SystemCallError) {
      let file = try Descriptor.open(Self.result, O_WRONLY | O_CREAT | O_EXCL, mode: 0o644)
      try file.writeAll(Self.example)
    } catch { throw CommandFailure(.cannotCreate, error.description) }
    Output.complain(
      "\(Self.result) is written with an example: change it, then `dormouse up` starts the workers")
  }

  /// The example. It is valid for a daemon, too: `dormouse policy check` finds no error in it.
  static let example = """
    # The workers of this directory. `dormouse up` starts them and shows their output; `dormouse \
    policy check
    # dormouse.yaml` checks this file. All keys: docs/configuration.md.

    # When a worker is put to sleep. `dormouse policy list` has others.
    # policy: server

    workers:
      web:
        command: [python3, -m, http.server, "8000"]
        # It is ready when this port answers; also: { log_line: "listening" }, { notify: true }.
        readiness: { tcp: 8000 }
        # environment: { PORT: "8000" }
        # env_file: .env
        # directory: web
        # restart: on-failure
        # policy: { hibernate: { after: 5m } }

      # A worker that is started after `web`, and only by `dormouse start jobs`:
      # jobs:
      #   command: ./jobs --once
      #   depends_on: [web]
      #   autostart: false

    """
}
