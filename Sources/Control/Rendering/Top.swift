/// The output of `dormouse top` without a terminal: the pressure and the totals, then the workers.
///
/// - Parameter width: the terminal's width in columns; nil for no limit.
public func renderTop(
  _ workers: [WorkerReport], daemon: DaemonReport?, width: Int?, color: Bool = false
) -> [String] {
  let saved = savedNowText(workers).map { ["saved now \($0)"] } ?? []
  let head =
    saved + (daemon.map { pressureLines($0, width: width, color: color) } ?? [])
    + wrapped(totalsLine(workers, showsSaved: false), to: width)
  guard !workers.isEmpty else { return head }
  return head + [""] + workerTable(workers, width: width).lines(width: width, color: color)
}
