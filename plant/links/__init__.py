"""Network links that share their rate among transfers. Read `shared_link`, then `transfer`."""
