"""What is known: certificates, bounds that are exact or from samples, and the lines of which they are made."""
