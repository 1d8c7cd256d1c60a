import { printable } from '../command/index.ts';
import { toYaml } from './yaml.ts';

export const FORMATS = ['table', 'wide', 'json', 'yaml'] as const;
export type Format = (typeof FORMATS)[number];

/** What a command has to show: for programs, and for people. */
export interface View {
  readonly data: unknown;
  /** Without the last line's end. */
  text(wide: boolean): string;
}

export function render(view: View, format: Format): string {
  switch (format) {
    case 'json':
      return `${JSON.stringify(view.data, null, 2)}\n`;
    case 'yaml':
      return toYaml(view.data);
    case 'table':
    case 'wide':
      return `${printableLines(view.text(format === 'wide'))}\n`;
  }
}

export type Cell = string | number | boolean | null;

/** A column: its heading and what it shows of a row; `wide` ones only with `-o wide`. */
export interface Column<Row> {
  readonly name: string;
  readonly wide?: boolean;
  cell(row: Row): Cell;
}

/** Columns as wide as their longest cell, numbers to the right. */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[], wide = false): string {
  const shown = columns.filter((column) => wide || column.wide !== true);
  const grid = rows.map((row) => shown.map((column) => column.cell(row)));
  const widths = shown.map(({ name }, i) =>
    grid.reduce((width, cells) => Math.max(width, cellText(cells[i] ?? null).length), name.length),
  );
  const numeric = shown.map((_column, i) => grid.some((cells) => typeof cells[i] === 'number'));
  const line = (cells: readonly Cell[]): string =>
    cells
      .map((cell, i) => {
        const width = widths[i] ?? 0;
        return numeric[i] === true ? cellText(cell).padStart(width) : cellText(cell).padEnd(width);
      })
      .join('  ')
      .trimEnd();
  return [line(shown.map(({ name }) => name)), ...grid.map(line)].join('\n');
}

function cellText(cell: Cell): string {
  if (cell === null || cell === '') return '-';
  if (typeof cell === 'boolean') return cell ? 'yes' : 'no';
  return printable(String(cell));
}

/** Text of several lines as it may reach a terminal: what could steer it is escaped. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

const MAX_WORD_CHARS = 300;
const WORD_HEAD_CHARS = 80;

/** A message for people, however long the argument that it repeats. */
export function shortened(text: string): string {
  const long = new RegExp(`\\S{${MAX_WORD_CHARS + 1},}`, 'g');
  return text.replace(long, (word) => `${word.slice(0, WORD_HEAD_CHARS)}…`);
}

/** `b1=4,b2=4`, in the order given. */
export function countsText(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([id, count]) => `${id}=${count}`)
    .join(',');
}

/** A resource as people name it: a stream's bare name, `cache:kv` for a cache. */
export function resourceText(key: string): string {
  return key.startsWith('stream:') ? key.slice('stream:'.length) : key;
}
