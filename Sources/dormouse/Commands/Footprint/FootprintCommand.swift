import ArgumentParser
import Control
import FootprintTrace
import Glibc
import Linux

struct FootprintCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "footprint",
    abstract: "Show what dirty memory is mapped for; record a footprint, draw it, and compare two.",
    subcommands: [
      FootprintMapsCommand.self, FootprintRecordCommand.self, FootprintShowCommand.self,
      FootprintCompareCommand.self,
    ], defaultSubcommand: FootprintMapsCommand.self)
}

/// The options of a picture on a terminal.
struct TerminalDrawing: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Columns of the picture, 24 to 1000. Default: the terminal's, or else 80.",
      valueName: "columns"))
  var width: Int?
  @Option(help: ArgumentHelp("Lines of the plot, 3 to 100.", valueName: "lines"))
  var height = 12
  @Flag(help: "Draw with ASCII characters only. Default where the locale isn't UTF-8.")
  var ascii = false

  func validate() throws {
    try checkNumber("--width", width, in: 24...1000)
    try checkNumber("--height", height, in: 3...100)
  }

  var style: TerminalStyle {
    TerminalStyle(
      width: width ?? Terminal.width ?? 80, rows: height, color: Terminal.showsColor,
      ascii: ascii || !Terminal.showsUnicode)
  }
}

/// The option for the size that a footprint is compared with.
struct OverOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Report how long the footprint was over this size. Default: 16MB.",
      valueName: "size"))
  var over: String?

  func bytes() throws -> Int64 {
    try over.map { try size($0, of: "--over") } ?? RecordingStatistics.defaultLimit
  }
}

enum RecordingFiles {
  /// Reads a recording. `-` is standard input.
  static func read(_ path: String) throws -> Recording {
    let file = try FileError.wrap("reading", on: path) { () throws(SystemCallError) in
      path == "-"
        ? Descriptor(owning: try systemCall("dup") { dup(STDIN_FILENO) })
        : try Descriptor.open(path)
    }
    var reader = RecordingReader(file: path == "-" ? "standard input" : path)
    do {
      while true {
        let bytes = try readSome(file, upTo: 1 << 18, path: path)
        if bytes.isEmpty { return try reader.finish() }
        try reader.feed(bytes)
      }
    } catch let error as RecordingError {
      throw CommandFailure(.badConfiguration, escaped(error.description))
    }
  }
}
