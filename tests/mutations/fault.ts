/** A small fault that compiles: one to three lines that a person could get wrong. */
export interface Fault {
  /** What is wrong with it put in. */
  readonly what: string;
  readonly file: string;
  /** Stands exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** Test files of its area and its neighbours that may find it, the cheapest first. */
  readonly tests: readonly string[];
  /** Seeds of the simulator to play where no test finds it. */
  readonly seeds?: number;
}
