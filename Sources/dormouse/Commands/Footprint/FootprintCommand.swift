import ArgumentParser
import Control
import FootprintTrace
import Glibc
import Linux
import PolicyFile

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
    if let width, !(24...1000).contains(width) {
      throw ValidationError("--width is a number from 24 to 1000, not \(width).")
    }
    if !(3...100).contains(height) {
      throw ValidationError("--height is a number from 3 to 100, not \(height).")
    }
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
    guard let over else { return RecordingStatistics.defaultLimit }
    switch OptionUnits.size(over) {
    case .success(let bytes): return bytes
    case .failure(let problem):
      throw CommandFailure(exit: .usage, text: escaped("--over \(problem)"))
    }
  }
}

enum RecordingFiles {
  /// Reads a recording. `-` is standard input.
  static func read(_ path: String) throws -> Recording {
    let file = try check(
      "reading", on: path,
      result: kernelResult(path) {
        path == "-" ? dup(STDIN_FILENO) : open($0, O_RDONLY | O_CLOEXEC)
      })
    defer { close(file) }
    var reader = RecordingReader(file: path == "-" ? "standard input" : path)
    var buffer = [UInt8](repeating: 0, count: 1 << 18)
    do {
      while true {
        let count = try readSome(&buffer, from: file, path: path)
        if count == 0 { return try reader.finish() }
        try reader.feed(Array(buffer[..<count]))
      }
    } catch let error as RecordingError {
      throw CommandFailure(exit: .badConfiguration, text: escaped(error.description))
    }
  }
}
