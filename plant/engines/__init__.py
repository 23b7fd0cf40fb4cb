"""Real OpenAI-compatible engines behind the `Plant` port, on the real clock only. Read `plant`, then `exchange`."""
