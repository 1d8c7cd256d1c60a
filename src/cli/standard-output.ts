import { fstatSync, fsyncSync, writeSync } from 'node:fs';

const STANDARD_OUTPUT = 1;

/** Where a command's data goes. */
export interface StandardOutput {
  /** Writes all of the text, or reports why not. */
  write(text: string): void;
  /** Resolves once everything written has left this process; a regular file is then on disk. */
  flush(): Promise<void>;
}

/**
 * Opens this process's standard output. The first write that fails is reported by `onFirstFailure`, with the system's code
 * (`EPIPE`, `ENOSPC`): whoever reads half a file must not be told that the command succeeded.
 */
export function openStandardOutput(onFirstFailure: (code: string) => void): StandardOutput {
  let hasFailed = false;
  const onFailure = (code: string): void => {
    if (hasFailed) return;
    hasFailed = true;
    onFirstFailure(code);
  };
  const stat = fstatSync(STANDARD_OUTPUT);
  const isFile = stat.isFile() || (stat.isCharacterDevice() && !process.stdout.isTTY);
  return isFile ? fileOutput(onFailure, stat.isFile()) : streamOutput(onFailure);
}

/** `process.stdout` of a file writes a chunk once and ignores how much of it the disk took. */
function fileOutput(onFailure: (code: string) => void, isRegular: boolean): StandardOutput {
  const attempt = (run: () => void): void => {
    try {
      run();
    } catch (error) {
      onFailure(codeOf(error));
    }
  };
  return {
    write(text) {
      attempt(() => {
        let rest: Uint8Array = Buffer.from(text);
        while (rest.length > 0) rest = rest.subarray(writeSync(STANDARD_OUTPUT, rest));
      });
    },
    flush: async () => {
      // A file system may find out only now that it has no room (delayed allocation, NFS).
      if (isRegular) attempt(() => fsyncSync(STANDARD_OUTPUT));
    },
  };
}

function streamOutput(onFailure: (code: string) => void): StandardOutput {
  process.stdout.on('error', (error) => onFailure(codeOf(error)));
  return {
    write: (text) => void process.stdout.write(text),
    flush: () => new Promise((resolve) => process.stdout.write('', () => resolve())),
  };
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
