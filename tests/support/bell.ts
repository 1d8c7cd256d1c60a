/** Waits for what others bring about, without a clock: whoever changed something rings. */
export class Bell {
  #wake: () => void = () => {};

  ring(): void {
    this.#wake();
  }

  /** Resolves once `holds` answers true, asked now and after each ring. One waits at a time. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}
