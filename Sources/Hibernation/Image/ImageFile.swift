import CLinux
import Glibc
import Linux

/// What must be on the disk before the first page of the worker is freed.
public enum ImageDurability: String, Sendable, CaseIterable {
  /// The disk has confirmed the whole image (`fdatasync(2)`) and its name.
  case synced
  /// The image is in the page cache. If the disk fails to write it later, the worker's memory is
  /// lost.
  case cached
}

/// How images are opened and dropped from the page cache.
enum ImageFile {
  /// Opens a file, which must be regular. It doesn't wait for the other end of a FIFO, opens no
  /// device, and follows no link.
  static func open(_ path: String) throws(ImageError) -> Descriptor {
    let file: Descriptor
    do throws(SystemCallError) {
      file = try Descriptor.open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
    } catch {
      throw error.code == ELOOP || error.code == ENXIO
        ? .notAFile(path: path) : .unreadable(path: path, error)
    }
    guard file.status?.isRegularFile == true else { throw .notAFile(path: path) }
    return file
  }

  /// Creates a file that only its user can read. It replaces what exists at that path.
  static func create(_ path: String) throws(SystemCallError) -> Descriptor {
    discardFile(path)
    let file = try Descriptor.open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
    BootMark.set(on: file)
    return file
  }

  /// Waits until the disk has confirmed a directory's entries.
  static func syncDirectory(of path: String) throws(SystemCallError) {
    let parent = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
    let directory = try Descriptor.open(parent.isEmpty ? "/" : parent, O_RDONLY | O_DIRECTORY)
    try directory.sync(parent)
  }

  /// Drops the pages of a file that are on the disk from the page cache, and starts to write the
  /// other pages.
  static func dropFromCache(_ path: String) {
    guard let file = try? open(path) else { return }  // There is nothing to drop.
    dropFromCache(file)
  }

  static func dropFromCache(_ file: Descriptor) {
    _ = clinux_start_writeback(file.raw, 0, 0)
    _ = clinux_drop_page_cache(file.raw)
  }
}

extension Hibernator {
  /// Drops images and their bases from the page cache, if memory is short: their workers sleep.
  public static func dropFromCache(images: [String]) {
    for path in images {
      ImageFile.dropFromCache(path)
      ImageFile.dropFromCache(ImageLayout.basePath(of: path))
    }
  }
}
