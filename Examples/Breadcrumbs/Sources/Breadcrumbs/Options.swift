import Glibc

/// The options on the command line.
struct Options: Hashable {
  var data: String
  /// The port; `nil` if HTTP isn't served, unless a socket was given.
  var port: UInt16?
  var isBroken = false

  static let usage = """
    usage: Breadcrumbs [--data DIRECTORY] [--http PORT] [--broken]

    A travel journal that is a good citizen of memory. Commands are read from stdin, a line each \
    (`help` lists them),
    and from HTTP at 127.0.0.1 with --http, or where a socket is given in LISTEN_FDS.

      --data DIRECTORY  for the journal and its photos; ~/.local/share/breadcrumbs without it
      --http PORT       1 to 65535
      --broken          its slide show leaks every photo that it has shown
    """

  enum Problem: Error, Hashable {
    case help
    case bad(String)
  }

  init(_ arguments: some Sequence<String>, environment: (String) -> String?) throws(Problem) {
    var iterator = arguments.makeIterator()
    var directory: String?
    while let argument = iterator.next() {
      switch argument {
      case "--data":
        guard let path = iterator.next(), !path.isEmpty else {
          throw .bad("--data needs a directory")
        }
        directory = path
      case "--http":
        guard let port = iterator.next().flatMap({ UInt16($0) }), port > 0 else {
          throw .bad("--http needs a port, 1 to 65535")
        }
        self.port = port
      case "--broken": isBroken = true
      case "--help", "-h": throw .help
      default: throw .bad("\(argument) isn't an option")
      }
    }
    guard let data = directory ?? Self.defaultDirectory(environment) else {
      throw .bad("there is no HOME; --data DIRECTORY")
    }
    self.data = data
  }

  private static func defaultDirectory(_ environment: (String) -> String?) -> String? {
    if let data = environment("XDG_DATA_HOME"), data.hasPrefix("/") { return "\(data)/breadcrumbs" }
    return environment("HOME").map { "\($0)/.local/share/breadcrumbs" }
  }
}
