import Control
import FootprintTrace
import Glibc
import Linux

/// Shows a recording while it is made: on a terminal a picture that is redrawn in place, otherwise
/// a line for each event. A recorded command has the terminal for itself, so nothing is shown.
final class RecordingView {
  private let isCommand: Bool
  private let isQuiet: Bool
  private let isLive: Bool
  private var drawn = 0
  private var drawnAt: Int64 = 0

  init(isCommand: Bool, isQuiet: Bool) {
    self.isCommand = isCommand
    self.isQuiet = isQuiet
    isLive = !isCommand && !isQuiet && isatty(STDOUT_FILENO) == 1
  }

  /// Redraws the picture, at most five times a second.
  func show(_ recorder: Recorder) {
    guard isLive, Clocks.monotonic - drawnAt >= 200_000_000 else { return }
    drawnAt = Clocks.monotonic
    let size = Terminal.size
    let style = TerminalStyle(
      width: size.columns - 1, rows: min(12, size.rows - 5), color: Terminal.showsColor,
      ascii: !Terminal.showsUnicode)
    let lines = renderLive(recorder.recent, style: style)
    // The text moves to the picture's first line, and clears the remainder of each old line.
    let start = drawn > 0 ? "\u{1B}[\(drawn)A\r" : ""
    try? Output.write(start + lines.map { $0 + "\u{1B}[K\n" }.joined() + "\u{1B}[J")
    drawn = lines.count
  }

  func show(_ mark: FootprintMark) {
    guard !isLive, !isCommand, !isQuiet else { return }
    // Output that can't be written doesn't stop the recording.
    try? Output.line("\(durationText(mark.at)): \(mark.sentence)")
  }

  /// Removes the picture, which the picture of the whole recording replaces.
  func close() {
    if drawn > 0 { try? Output.write("\u{1B}[\(drawn)A\r\u{1B}[J") }
    drawn = 0
  }

  /// Prints a summary of the recording and its path.
  func sum(up path: String) throws {
    guard !isQuiet else { return }
    let recording: Recording
    do { recording = try RecordingFiles.read(path) } catch let failure as CommandFailure {
      // The program may have ended before the first sample.
      return Output.complain(failure.text)
    }
    let name = escaped(path)
    let statistics = RecordingStatistics(recording)
    let sentence = "\(name): \(counted(statistics.samples, "sample")), \(statistics.sentence)"
    if isCommand { return Output.standardError("dormouse: \(sentence)\n") }
    if isLive {
      let style = TerminalStyle(
        width: Terminal.width ?? 80, color: Terminal.showsColor, ascii: !Terminal.showsUnicode)
      try Output.line(renderRecording(recording, style: style).joined(separator: "\n"))
    }
    try Output.line(isLive ? "\(name): \(counted(statistics.samples, "sample"))" : sentence)
  }
}
