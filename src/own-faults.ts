/**
 * Calls back with an error that nothing caught, thrown or of a promise: what it left half done is not known, so the process
 * has to end. Whoever asks first is told; the answer takes the callback back.
 */
export function onOwnFault(callback: (error: Error) => void): () => void {
  const tell = (reason: unknown): void =>
    callback(reason instanceof Error ? reason : new Error(String(reason)));
  process.on('uncaughtException', tell);
  process.on('unhandledRejection', tell);
  return () => {
    process.removeListener('uncaughtException', tell);
    process.removeListener('unhandledRejection', tell);
  };
}
