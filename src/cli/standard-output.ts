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
 * Opens this process's standard output. A failed write is reported once, by `onFailure`, with the system's code
 * (`EPIPE`, `ENOSPC`): whoever reads half a file must not be told that the command succeeded.
 *
 * @param onFailure does not return: what the command still has to say has nowhere to go.
 */
export function openStandardOutput(onFailure: (code: string) => never): StandardOutput {
  const stat = fstatSync(STANDARD_OUTPUT);
  const isFile = stat.isFile() || (stat.isCharacterDevice() && !process.stdout.isTTY);
  return isFile ? fileOutput(onFailure, stat.isFile()) : streamOutput(onFailure);
}

/** `process.stdout` of a file writes a chunk once and ignores how much of it the disk took. */
function fileOutput(onFailure: (code: string) => never, isRegular: boolean): StandardOutput {
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

function streamOutput(onFailure: (code: string) => never): StandardOutput {
  process.stdout.on('error', (error) => onFailure(codeOf(error)));
  return {
    write: (text) => void process.stdout.write(text),
    flush: () => new Promise((resolve) => process.stdout.write('', () => resolve())),
  };
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
