import Hibernation
import Lifecycle
import Linux
import Supervision

extension WorkerRecord {
  /// The worker's cgroup; nil: it has none.
  func cgroup() throws -> WorkerCgroup? {
    try cgroupPath.map { try WorkerCgroup(path: $0, isExternal: external != nil) }
  }

  /// The record, corrected if the worker's cgroup notes that the worker was resumed from the image
  /// that the record names. Then the record only couldn't be written after the resume, and the
  /// worker may run.
  func correctedByNote() -> WorkerRecord {
    guard state == WorkerState.hibernated.rawValue, let imageMark else { return self }
    do {
      guard let group = try cgroup(), try ResumeMarker.read(of: group)?.text == imageMark else {
        return self
      }
    } catch {
      // Without the cgroup there is no note. The record is right unless a note contradicts it.
      return self
    }
    var corrected = self
    corrected.state = WorkerState.background.rawValue
    corrected.imageMark = nil
    return corrected
  }
}

extension ImageExpectation {
  /// What to expect of a worker's image, by its record. Only a worker that is recorded as
  /// hibernated is certain to have its memory in an image: a resume is recorded before the image is
  /// removed. A hibernation is recorded before the image gets its name.
  static func of(_ record: WorkerRecord) -> ImageExpectation {
    let directory = record.imageDirectory.flatMap(ImageDirectory.init(text:))
    switch WorkerState(rawValue: record.state) {
    case .hibernated:
      guard let mark = record.imageMark.flatMap(ImageMark.init(text:)) else { return .hibernated }
      return .image(mark, in: directory)
    case .hibernating, .resuming, .terminating, .terminated, nil: return .unknown(in: directory)
    case .launching, .foreground, .background, .suspending, .suspended:
      return .awake(in: directory)
    }
  }
}
