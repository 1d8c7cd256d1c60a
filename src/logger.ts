import { pino } from 'pino';
import type { LogLevel } from './log-levels.ts';

/** Lines for operators. Fields first, then a sentence; `term` and `index` are given where they are known. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  fatal(fields: object, message: string): void;
  /** The same with these fields on every line. */
  child(fields: Record<string, unknown>): Logger;
}

/** JSON lines, written at once so that a line before a crash is not lost; on stderr unless told otherwise. */
export function createLogger(options: {
  readonly level: LogLevel;
  readonly node: string;
  readonly destination?: { write(line: string): void };
}): Logger {
  const destination = options.destination ?? pino.destination({ dest: 2, sync: true });
  return pino(
    {
      level: options.level,
      base: { node: options.node },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );
}

export const SILENT_LOGGER: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  fatal() {},
  child: () => SILENT_LOGGER,
};
