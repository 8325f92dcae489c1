"""One retrieval interface for WebShop and Search-QA, with interchangeable back ends."""
