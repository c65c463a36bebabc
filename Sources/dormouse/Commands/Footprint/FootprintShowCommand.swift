import ArgumentParser
import Control
import FootprintTrace

struct FootprintShowCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Draw a recorded footprint: stair-step, warnings, states.",
    discussion: """
      On the terminal each column is as high as the footprint's highest moment in it, coloured by \
      the worker's state. A triangle marks a memory warning, with what it freed, a dot a change \
      of state. --svg also draws it as a file, by kind of memory. docs/footprint.md describes the file's format.
      """)
  @OptionGroup var drawing: TerminalDrawing
  @OptionGroup var over: OverOption
  @Option(
    help: ArgumentHelp("Also draw it into this file.", valueName: "file"), completion: .file())
  var svg: String?
  @Option(
    help: ArgumentHelp("So many of what happened are listed; `all` for all.", valueName: "count"))
  var marks = LineCount(limit: 20)
  @Flag(help: "Print its numbers as JSON, and no picture.") var json = false
  @Argument(
    help: "A file of `dormouse footprint record`; `-` for standard input.", completion: .file())
  var file: String

  func run() throws {
    let limit = try over.bytes()
    let recording = try RecordingFiles.read(file)
    if let svg { try PictureFile(svg).write(recording.picture(limit: limit)) }
    if json { return try Output.json(RecordingSummary(recording, name: file, limit: limit)) }
    let lines = renderRecording(
      recording, limit: limit, style: drawing.style, most: marks.limit)
    try Output.line(lines.joined(separator: "\n"))
  }
}
